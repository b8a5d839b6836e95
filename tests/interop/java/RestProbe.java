import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.paimon.PagedList;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.catalog.PropertyChange;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.function.Function;
import org.apache.paimon.function.FunctionChange;
import org.apache.paimon.function.FunctionDefinition;
import org.apache.paimon.function.FunctionImpl;
import org.apache.paimon.options.Options;
import org.apache.paimon.partition.Partition;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Instant;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.view.View;
import org.apache.paimon.view.ViewChange;
import org.apache.paimon.view.ViewImpl;

/**
 * Does everything once that a REST catalog offers, and says what came of each step: {@code label, tab, outcome}.
 * Arguments: uri, warehouse, token. One source for several releases: what a release lacks is called by name.
 */
public class RestProbe {
    private static Catalog catalog;

    public static void main(String[] arguments) throws Exception {
        Options options = new Options();
        options.set("metastore", "rest");
        options.set("uri", arguments[0]);
        options.set("warehouse", arguments[1]);
        options.set("token.provider", "bear");
        options.set("token", arguments[2]);
        step("config", () -> {
            catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
            return null;
        });
        databases();
        tables();
        versions();
        changes();
        objects();
        ends();
        System.exit(0);
    }

    private static void databases() {
        step("create database", () -> ask("createDatabase", "db", false, map("a", "1")));
        step("create database again", () -> ask("createDatabase", "db", false));
        step("list databases", () -> ask("listDatabases"));
        step("list databases paged", () -> ask("listDatabasesPaged", 10, null, "d%"));
        step("get database", () -> catalog.getDatabase("db").options().get("a"));
        step("get missing database", () -> ask("getDatabase", "nope"));
        step("alter database", () -> ask("alterDatabase", "db",
                Arrays.asList(PropertyChange.setProperty("b", "2"), PropertyChange.removeProperty("a")), false));
    }

    private static void tables() {
        step("create table", () -> ask("createTable", id("db.t"), schema(), false));
        step("create table again", () -> ask("createTable", id("db.t"), schema(), false));
        step("create table no database", () -> ask("createTable", id("nope.t"), schema(), false));
        step("list tables", () -> ask("listTables", "db"));
        step("list tables paged", () -> ask("listTablesPaged", "db", 5, null, "t%", "table"));
        step("list table details", () -> size(ask("listTableDetailsPaged", "db", 5, null, null, null)));
        step("list tables globally", () -> ask("listTablesPagedGlobally", "d%", "t%", 5, null));
        step("get table", () -> catalog.getTable(id("db.t")).comment().orElse(null));
        step("describe column", () -> catalog.getTable(id("db.t")).rowType().getFields().get(1).description());
        step("get table by id", () -> ((Table) ask("getTableById", catalog.getTable(id("db.t")).uuid())).name());
        step("get missing table", () -> ask("getTable", id("db.nope")));
        step("read empty", () -> read("db.t"));
        step("write 1", () -> write("db.t", 3, "a"));
        step("write 2", () -> write("db.t", 5, "b"));
        step("read", () -> read("db.t"));
        step("load snapshot", () -> ask("loadSnapshot", id("db.t")).toString().contains("Optional.empty"));
        step("list snapshots", () -> size(ask("listSnapshotsPaged", id("db.t"), 10, null)));
        step("list partitions", () -> partitions(ask("listPartitions", id("db.t"))));
        step("list partitions paged", () -> partitions(ask("listPartitionsPaged", id("db.t"), 10, null, "dt=%")));
        step("list partitions by names", () -> partitions(ask("listPartitionsByNames", id("db.t"), list(map("dt", "a")))));
        step("mark done", () -> ask("markDonePartitions", id("db.t"), list(map("dt", "a"))));
        step("snapshots table", () -> read("db.t$snapshots"));
    }

    private static void versions() {
        step("create tag", () -> ask("createTag", id("db.t"), "t1", 1L, "1d", false));
        step("create tag again", () -> ask("createTag", id("db.t"), "t1", null, null, false));
        step("list tags", () -> ask("listTagsPaged", id("db.t"), 10, null, "t"));
        step("create tag by files", () -> { catalog.getTable(id("db.t")).createTag("t2", 1L); return null; });
        step("read tag", () -> read(catalog.getTable(id("db.t")).copy(map("scan.tag-name", "t2"))));
        step("create branch", () -> ask("createBranch", id("db.t"), "b1", "t2"));
        step("create branch again", () -> ask("createBranch", id("db.t"), "b1", null));
        step("list branches", () -> ask("listBranches", id("db.t")));
        step("read branch", () -> read("db.t$branch_b1"));
        step("write branch", () -> write("db.t$branch_b1", 2, "c"));
        step("read branch again", () -> read("db.t$branch_b1"));
        step("forward branch", () -> ask("fastForward", id("db.t"), "b1"));
        step("read after forward", () -> read("db.t"));
        step("rename branch", () -> ask("renameBranch", id("db.t"), "b1", "b2"));
        step("drop branch", () -> ask("dropBranch", id("db.t"), "b2"));
        step("drop branch b1", () -> ask("dropBranch", id("db.t"), "b1"));
        step("delete tag", () -> ask("deleteTag", id("db.t"), "t1"));
        step("roll back", () -> ask("rollbackTo", id("db.t"), Instant.snapshot(1L)));
        step("read after rollback", () -> read("db.t"));
        step("roll back to missing tag", () -> ask("rollbackTo", id("db.t"), Instant.tag("nope")));
        step("roll back schema", () -> ask("rollbackSchema", id("db.t"), 0L));
        step("list consumers", () -> ask("listConsumersPaged", id("db.t"), 10, null));
        step("reset consumer", () -> ask("resetConsumer", id("db.t"), "c1", 3L));
    }

    private static void changes() {
        step("alter table", () -> ask("alterTable", id("db.t"), Arrays.asList(
                SchemaChange.addColumn("x", DataTypes.INT(), "new", SchemaChange.Move.after("x", "k")),
                SchemaChange.setOption("snapshot.num-retained.max", "99"),
                SchemaChange.removeOption("nope"),
                SchemaChange.updateComment("cc"),
                SchemaChange.renameColumn("v", "w"),
                SchemaChange.updateColumnType("x", DataTypes.BIGINT()),
                SchemaChange.updateColumnComment("w", "hi"),
                SchemaChange.updateColumnPosition(SchemaChange.Move.first("w"))), false));
        step("columns", () -> catalog.getTable(id("db.t")).rowType().getFieldNames());
        step("alter missing column", () -> ask("alterTable", id("db.t"), list(SchemaChange.dropColumn("nope")), false));
        step("alter existing column",
                () -> ask("alterTable", id("db.t"), list(SchemaChange.addColumn("w", DataTypes.INT())), false));
        step("drop partitions", () -> ask("dropPartitions", id("db.t"), list(map("dt", "a"))));
        step("read after drop", () -> read("db.t"));
        step("rename table", () -> ask("renameTable", id("db.t"), id("db.t2"), false));
        step("register table", () -> ask("registerTable", id("db.reg"), outside()));
        step("read registered", () -> read("db.reg"));
        step("authorise", () -> ask("authTableQuery", id("db.t2"), list("k")) == null);
    }

    private static void objects() {
        List<DataField> fields = DataTypes.ROW(DataTypes.FIELD(0, "k", DataTypes.BIGINT())).getFields();
        View view = new ViewImpl(id("db.v"), fields, "SELECT k FROM t", map("spark", "SELECT k FROM t"), "c", map("o", "1"));
        step("create view", () -> ask("createView", id("db.v"), view, false));
        step("create view again", () -> ask("createView", id("db.v"), view, false));
        step("get view", () -> ((View) ask("getView", id("db.v"))).query());
        step("list views", () -> ask("listViews", "db"));
        step("list view details", () -> size(ask("listViewDetailsPaged", "db", 5, null, null)));
        step("list views globally", () -> ask("listViewsPagedGlobally", null, null, 5, null));
        step("alter view", () -> ask("alterView", id("db.v"),
                Arrays.asList(ViewChange.addDialect("flink", "SELECT 1"), ViewChange.setOption("p", "2")), false));
        step("alter view missing dialect", () -> ask("alterView", id("db.v"), list(ViewChange.dropDialect("nope")), false));
        step("rename view", () -> ask("renameView", id("db.v"), id("db.v2"), false));
        step("drop view", () -> ask("dropView", id("db.v2"), false));
        Map<String, FunctionDefinition> definitions = new LinkedHashMap<>();
        definitions.put("spark", FunctionDefinition.lambda("(x) -> x", "JAVA"));
        definitions.put("sql", FunctionDefinition.sql("SELECT 1"));
        Function function = new FunctionImpl(id("db.f"), fields, fields, true, definitions, "c", new TreeMap<>());
        step("create function", () -> ask("createFunction", id("db.f"), function, false));
        step("get function", () -> ((Function) ask("getFunction", id("db.f"))).definitions().size());
        step("list functions", () -> ask("listFunctions", "db"));
        step("list function details", () -> size(ask("listFunctionDetailsPaged", "db", 5, null, null)));
        step("list functions globally", () -> ask("listFunctionsPagedGlobally", null, null, 5, null));
        step("alter function", () -> ask("alterFunction", id("db.f"),
                list(FunctionChange.updateDefinition("sql", FunctionDefinition.sql("SELECT 2"))), false));
        step("drop function", () -> ask("dropFunction", id("db.f"), false));
    }

    private static void ends() {
        step("drop table", () -> ask("dropTable", id("db.t2"), false));
        step("drop missing table", () -> ask("dropTable", id("db.t2"), false));
        step("drop non-empty database", () -> ask("dropDatabase", "db", false, false));
        step("drop database", () -> ask("dropDatabase", "db", false, true));
        step("list databases at the end", () -> ask("listDatabases"));
    }

    // --- steps ----------------------------------------------------------------------------------

    private static void step(String label, Callable<Object> action) {
        String outcome;
        try {
            outcome = text(action.call());
        } catch (NoSuchMethodException lacking) {
            outcome = "(lacking)";
        } catch (Throwable error) {
            outcome = "! " + error.getClass().getSimpleName();
        }
        System.out.println(label + "\t" + outcome);
    }

    /** Calls a method of the catalog that this release may lack. */
    private static Object ask(String name, Object... arguments) throws Exception {
        for (Method method : Catalog.class.getMethods()) {
            if (method.getName().equals(name) && fits(method.getParameterTypes(), arguments)) {
                try {
                    return method.invoke(catalog, arguments);
                } catch (InvocationTargetException error) {
                    throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static boolean fits(Class<?>[] types, Object[] arguments) {
        if (types.length != arguments.length) {
            return false;
        }
        for (int i = 0; i < types.length; i++) {
            Class<?> type = types[i] == boolean.class ? Boolean.class : types[i] == long.class ? Long.class : types[i];
            if (arguments[i] == null ? types[i].isPrimitive() : !type.isInstance(arguments[i])) {
                return false;
            }
        }
        return true;
    }

    private static String text(Object value) {
        Object shown = value instanceof PagedList ? ((PagedList<?>) value).getElements() : value;
        if (shown instanceof Collection) {
            List<String> names = new ArrayList<>();
            ((Collection<?>) shown).forEach(each -> names.add(
                    each instanceof Identifier ? ((Identifier) each).getFullName() : String.valueOf(each)));
            return names.toString();
        }
        return shown == null ? "-" : String.valueOf(shown);
    }

    private static Object size(Object page) {
        return ((PagedList<?>) page).getElements().size();
    }

    private static Object partitions(Object found) {
        Collection<?> all = found instanceof PagedList ? ((PagedList<?>) found).getElements() : (Collection<?>) found;
        Map<String, Long> counts = new TreeMap<>();
        all.forEach(each -> counts.put(((Partition) each).spec().toString(), ((Partition) each).recordCount()));
        return counts;
    }

    // --- rows -----------------------------------------------------------------------------------

    private static Schema schema() {
        return Schema.newBuilder()
                .column("k", DataTypes.BIGINT().notNull())
                .column("v", DataTypes.STRING(), "value 数")
                .column("dt", DataTypes.STRING().notNull())
                .partitionKeys("dt")
                .primaryKey("k", "dt")
                .option("bucket", "1")
                .option("metastore.partitioned-table", "true")
                .comment("c é 表")
                .build();
    }

    private static Object write(String name, int count, String partition) throws Exception {
        BatchWriteBuilder builder = catalog.getTable(id(name)).newBatchWriteBuilder();
        try (BatchTableWrite write = builder.newWrite();
                BatchTableCommit commit = builder.newCommit()) {
            for (long key = 0; key < count; key++) {
                write.write(GenericRow.of(key, BinaryString.fromString("v" + key), BinaryString.fromString(partition)));
            }
            commit.commit(write.prepareCommit());
        }
        return null;
    }

    private static Object read(String name) throws Exception {
        return read(catalog.getTable(id(name)));
    }

    private static Object read(Table table) throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        long[] count = {0};
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan().splits())) {
            reader.forEachRemaining(row -> count[0]++);
        }
        return count[0];
    }

    /** A table in a folder of its own, which the catalog does not know. */
    private static String outside() throws Exception {
        String folder = System.getProperty("outside");
        Options options = new Options();
        options.set("warehouse", folder);
        Catalog files = CatalogFactory.createCatalog(CatalogContext.create(options));
        files.createDatabase("o", true);
        files.createTable(id("o.t"), schema(), true);
        return ((FileStoreTable) files.getTable(id("o.t"))).location().toString();
    }

    private static Identifier id(String name) {
        return Identifier.fromString(name);
    }

    private static Map<String, String> map(String key, String value) {
        return Collections.singletonMap(key, value);
    }

    private static <T> List<T> list(T value) {
        return Collections.singletonList(value);
    }
}
