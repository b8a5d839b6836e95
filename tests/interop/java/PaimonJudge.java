import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.source.TableScan;

/**
 * Reads, writes and compacts Paimon tables with Java Paimon; rows are in the canonical form of
 * tests/golden/README.md.
 *
 * <p>One request a line on standard input: {"operation", "warehouse", "store", "table", "options",
 * ...}. One answer a line on standard output, or {"error"}. "store" has the catalog options that
 * reach the warehouse. The option "branch" stands for the identifier t$branch_NAME. Rows travel in
 * files, one JSON list a line, the row kind first:
 *
 * <ul>
 *   <li>read: the rows go to the file "out"; the answer has "columns", and in "buckets" the bucket
 *       of each row where the table has data splits.
 *   <li>stream: the rows of every plan of a stream that starts at the snapshot "from" go to the file
 *       "out", the number of the plan before the row kind.
 *   <li>write: the rows come from the file "data".
 *   <li>delete: the rows that have one of the "values" in a BIGINT "column".
 *   <li>compact: all buckets, entirely where "full" is true; postponed rows get their buckets.
 *   <li>postponed: the records of postponed files, with the writer's number, the key and the
 *       sequence number before the row kind, go to the file "out".
 * </ul>
 */
@SuppressWarnings("unchecked")
public final class PaimonJudge {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // log lines must not look like answers
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer(JSON.readValue(line, Map.class), answer);
            } catch (Exception | LinkageError problem) {
                answer.put("error", describe(problem));
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static void answer(Map<String, Object> request, Map<String, Object> answer)
            throws Exception {
        try (Catalog catalog = openCatalog(request)) {
            Map<String, String> options = new HashMap<>((Map<String, String>) request.get("options"));
            String branch = options.remove("branch");
            String name = request.get("table") + (branch == null ? "" : "$branch_" + branch);
            Table table = catalog.getTable(Identifier.fromString(name)).copy(options);
            switch ((String) request.get("operation")) {
                case "read":
                    read(table, request, answer);
                    break;
                case "stream":
                    writeLines(request, follow(table, (Number) request.get("from")));
                    break;
                case "write":
                    KeyWrites.write((FileStoreTable) table, readLines(request));
                    break;
                case "delete":
                    new RowDeletes(
                                    (FileStoreTable) table,
                                    (String) request.get("column"),
                                    (List<Number>) request.get("values"))
                            .run();
                    break;
                case "compact":
                    KeyWrites.compact((FileStoreTable) table, (Boolean) request.get("full"));
                    break;
                case "postponed":
                    writeLines(request, KeyWrites.postponed((FileStoreTable) table));
                    break;
                default:
                    throw new IllegalArgumentException("unknown: " + request.get("operation"));
            }
        }
    }

    private static Catalog openCatalog(Map<String, Object> request) {
        Options options = new Options();
        options.set("warehouse", (String) request.get("warehouse"));
        // How a warehouse in a store is reached.
        ((Map<String, String>) request.getOrDefault("store", Map.of())).forEach(options::set);
        options.set("cache-enabled", "false"); // others write to the table between two requests
        return CatalogFactory.createCatalog(CatalogContext.create(options));
    }

    private static void read(Table table, Map<String, Object> request, Map<String, Object> answer)
            throws Exception {
        List<Integer> buckets = new ArrayList<>();
        List<List<Object>> lines = new ArrayList<>();
        ReadBuilder builder = table.newReadBuilder();
        for (Split split : builder.newScan().plan().splits()) {
            try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
                reader.forEachRemaining(
                        row -> {
                            lines.add(Canonical.line(row.getRowKind(), row, table.rowType()));
                            if (split instanceof DataSplit) {
                                buckets.add(((DataSplit) split).bucket());
                            }
                        });
            }
        }
        writeLines(request, lines);
        answer.put("columns", table.rowType().getFieldNames());
        answer.put("buckets", buckets);
    }

    private static List<List<Object>> follow(Table table, Number from) throws Exception {
        List<List<Object>> lines = new ArrayList<>();
        ReadBuilder builder = table.newReadBuilder();
        StreamTableScan scan = builder.newStreamScan();
        scan.restore(from.longValue());
        int number = 0;
        for (TableScan.Plan plan = scan.plan(); plan != null; plan = next(scan)) {
            List<Object> place = List.of(number++);
            for (Split split : plan.splits()) {
                try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
                    reader.forEachRemaining(
                            row -> {
                                List<Object> line = new ArrayList<>(place);
                                line.addAll(
                                        Canonical.line(row.getRowKind(), row, table.rowType()));
                                lines.add(line);
                            });
                }
            }
        }
        return lines;
    }

    /** The next plan; null where the stream waits for another snapshot. */
    private static TableScan.Plan next(StreamTableScan scan) throws Exception {
        Long before = scan.checkpoint();
        TableScan.Plan plan = scan.plan();
        boolean waits = plan.splits().isEmpty() && before.equals(scan.checkpoint());
        return waits ? null : plan;
    }

    private static List<List<Object>> readLines(Map<String, Object> request) throws Exception {
        List<List<Object>> lines = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of((String) request.get("data")))) {
            lines.add(JSON.readValue(line, List.class));
        }
        return lines;
    }

    private static void writeLines(Map<String, Object> request, List<List<Object>> lines)
            throws Exception {
        try (BufferedWriter out = Files.newBufferedWriter(Path.of((String) request.get("out")))) {
            for (List<Object> line : lines) {
                out.write(JSON.writeValueAsString(line));
                out.newLine();
            }
        }
    }

    private static String describe(Throwable problem) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            text.append(text.length() == 0 ? "" : "; caused by ").append(cause);
        }
        return text.toString();
    }
}
