package org.apache.paimon.rest;

import java.util.HashMap;
import java.util.Map;
import org.apache.paimon.rest.auth.BearTokenAuthProvider;
import org.apache.paimon.rest.responses.ConfigResponse;

/**
 * Starts Java Paimon's mock of a REST catalog server and prints how to reach it, as one line of JSON. It serves until
 * its input ends. Arguments: the folder of the warehouse, the token, and "lose-one" if the first commit is to succeed
 * and to be answered with a failure.
 */
public class RestMock {
    public static void main(String[] args) throws Exception {
        Map<String, String> defaults = new HashMap<>();
        defaults.put("prefix", "paimon");
        ConfigResponse config = new ConfigResponse(defaults, new HashMap<>());
        RESTCatalogServer server =
                new RESTCatalogServer("file:" + args[0], new BearTokenAuthProvider(args[1]), config, "warehouse");
        RESTCatalogServer.commitSuccessThrowException = args.length > 2 && args[2].equals("lose-one");
        server.start();
        System.out.println("{\"uri\": \"" + server.getUrl() + "\", \"warehouse\": \"warehouse\"}");
        System.out.flush();
        while (System.in.read() >= 0) {}
        server.shutdown();
        System.exit(0);
    }
}
