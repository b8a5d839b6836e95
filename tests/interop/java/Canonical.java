import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/** Values of Java Paimon in the canonical form of tests/golden/README.md, there and back. */
@SuppressWarnings("unchecked")
final class Canonical {
    private Canonical() {}

    /** A row with its kind first. */
    static List<Object> line(RowKind kind, InternalRow row, RowType type) {
        List<Object> line = new ArrayList<>();
        line.add(kind.shortString());
        line.addAll((List<Object>) canonical(row, type));
        return line;
    }

    /** The row of a line; of nested types there is no way back. */
    static InternalRow row(List<Object> line, RowType type) {
        Object[] values = new Object[type.getFieldCount()];
        for (int i = 0; i < values.length; i++) {
            values[i] = internal(line.get(i + 1), type.getTypeAt(i));
        }
        return GenericRow.ofKind(RowKind.fromShortString((String) line.get(0)), values);
    }

    private static Object internal(Object value, DataType type) {
        if (value == null) {
            return null;
        }
        switch (type.getTypeRoot()) {
            case BOOLEAN:
                return value;
            case TINYINT:
                return ((Number) value).byteValue();
            case SMALLINT:
                return ((Number) value).shortValue();
            case INTEGER:
            case DATE:
            case TIME_WITHOUT_TIME_ZONE:
                return ((Number) value).intValue();
            case BIGINT:
                return ((Number) value).longValue();
            case FLOAT:
                return Float.intBitsToFloat(Integer.parseUnsignedInt((String) value, 16));
            case DOUBLE:
                return Double.longBitsToDouble(Long.parseUnsignedLong((String) value, 16));
            case DECIMAL:
                DecimalType decimal = (DecimalType) type;
                return Decimal.fromBigDecimal(
                        new BigDecimal((String) value), decimal.getPrecision(), decimal.getScale());
            case CHAR:
            case VARCHAR:
                return BinaryString.fromString((String) value);
            case BINARY:
            case VARBINARY:
                return HexFormat.of().parseHex((String) value);
            case TIMESTAMP_WITHOUT_TIME_ZONE:
            case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                List<Number> parts = (List<Number>) value;
                return Timestamp.fromEpochMillis(parts.get(0).longValue(), parts.get(1).intValue());
            default:
                throw new UnsupportedOperationException("the judge does not write " + type);
        }
    }

    static Object canonical(Object value, DataType type) {
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
            return HexFormat.of().formatHex((byte[]) value);
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

    private static List<Object> elements(InternalArray array, DataType type) {
        InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
        List<Object> elements = new ArrayList<>();
        for (int i = 0; i < array.size(); i++) {
            elements.add(canonical(getter.getElementOrNull(array, i), type));
        }
        return elements;
    }

    private static List<Object> pairs(InternalMap map, DataType type) {
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
}
