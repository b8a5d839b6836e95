import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/**
 * Reads Paimon tables with Java Paimon and writes their rows in the canonical form of
 * tests/golden/README.md.
 *
 * <p>One request a line on standard input: {"warehouse", "table", "options", "out"}. One answer a
 * line on standard output: {"columns", "buckets"} or {"error"}. The rows go to the file "out", one
 * JSON list a line, the row kind first; "buckets" has the bucket of each row where the table has
 * data splits. The option "branch" stands for the identifier t$branch_NAME.
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
                read(JSON.readValue(line, Map.class), answer);
            } catch (Exception | LinkageError problem) {
                answer.put("error", describe(problem));
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static void read(Map<String, Object> request, Map<String, Object> answer)
            throws Exception {
        try (Catalog catalog = openCatalog((String) request.get("warehouse"))) {
            Map<String, String> options = new HashMap<>((Map<String, String>) request.get("options"));
            String branch = options.remove("branch");
            String name = request.get("table") + (branch == null ? "" : "$branch_" + branch);
            Table table = catalog.getTable(Identifier.fromString(name)).copy(options);
            List<Integer> buckets = new ArrayList<>();
            try (BufferedWriter out = Files.newBufferedWriter(Path.of((String) request.get("out")))) {
                writeRows(table, out, buckets);
            }
            answer.put("columns", table.rowType().getFieldNames());
            answer.put("buckets", buckets);
        }
    }

    private static Catalog openCatalog(String warehouse) {
        Options options = new Options();
        options.set("warehouse", warehouse);
        options.set("cache-enabled", "false"); // others write to the table between two requests
        return CatalogFactory.createCatalog(CatalogContext.create(options));
    }

    private static void writeRows(Table table, BufferedWriter out, List<Integer> buckets)
            throws Exception {
        DataType rowType = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        for (Split split : builder.newScan().plan().splits()) {
            try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
                RecordReader.RecordIterator<InternalRow> batch;
                while ((batch = reader.readBatch()) != null) {
                    for (InternalRow row = batch.next(); row != null; row = batch.next()) {
                        List<Object> line = new ArrayList<>();
                        line.add(row.getRowKind().shortString());
                        line.addAll((List<Object>) canonical(row, rowType));
                        out.write(JSON.writeValueAsString(line));
                        out.newLine();
                        if (split instanceof DataSplit) {
                            buckets.add(((DataSplit) split).bucket());
                        }
                    }
                    batch.releaseBatch();
                }
            }
        }
    }

    private static Object canonical(Object value, DataType type) throws Exception {
        if (value == null || value instanceof Boolean) {
            return value;
        } else if (value instanceof Float) {
            return Integer.toHexString(Float.floatToIntBits((Float) value));
        } else if (value instanceof Double) {
            return Long.toHexString(Double.doubleToLongBits((Double) value));
        } else if (value instanceof Number) { // DATE and TIME are numbers already
            return value;
        } else if (value instanceof Decimal) {
            return ((Decimal) value).toBigDecimal().toPlainString();
        } else if (value instanceof Timestamp) {
            Timestamp time = (Timestamp) value;
            return Arrays.asList(time.getMillisecond(), time.getNanoOfMillisecond());
        } else if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder();
            for (byte b : (byte[]) value) {
                hex.append(String.format("%02x", b));
            }
            return hex.toString();
        } else if (value instanceof InternalRow) {
            List<Object> fields = new ArrayList<>();
            List<DataType> types = ((RowType) type).getFieldTypes();
            for (int i = 0; i < types.size(); i++) {
                Object field = InternalRow.createFieldGetter(types.get(i), i)
                        .getFieldOrNull((InternalRow) value);
                fields.add(canonical(field, types.get(i)));
            }
            return fields;
        } else if (value instanceof InternalArray) {
            return elements((InternalArray) value, ((ArrayType) type).getElementType());
        } else if (value instanceof InternalMap) {
            return Map.of("map", pairs((InternalMap) value, type));
        }
        return value.toString();
    }

    private static List<Object> elements(InternalArray array, DataType type) throws Exception {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        List<Object> elements = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            elements.add(canonical(getter.getElementOrNull(array, i), type));
        }
        return elements;
    }

    private static List<Object> pairs(InternalMap map, DataType type) throws Exception {
        boolean multiset = type instanceof MultisetType;
        DataType keyType = multiset ? ((MultisetType) type).getElementType() : ((MapType) type).getKeyType();
        DataType valueType = multiset ? DataTypes.INT().notNull() : ((MapType) type).getValueType();
        List<Object> keys = elements(map.keyArray(), keyType);
        List<Object> values = elements(map.valueArray(), valueType);
        List<Object> pairs = new ArrayList<>();
        for (int i = 0; i < keys.size(); i++) {
            pairs.add(Arrays.asList(keys.get(i), values.get(i)));
        }
        pairs.sort(Comparator.comparing(Object::toString));
        return pairs;
    }

    private static String describe(Throwable problem) {
        StringBuilder text = new StringBuilder();
        for (Throwable cause = problem; cause != null; cause = cause.getCause()) {
            text.append(text.length() == 0 ? "" : "; caused by ").append(cause);
        }
        return text.toString();
    }
}
