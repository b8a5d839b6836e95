import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.paimon.Snapshot;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.reader.FileRecordIterator;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.RowKind;
import org.apache.paimon.types.RowType;

/**
 * Deletes rows in the three ways of Paimon's engines, with the parts that they use: by records of
 * keys, by deletion vectors, by writing files again.
 *
 * <p>Of tables with data evolution this release can delete nothing.
 */
final class RowDeletes {
    private final FileStoreTable table;
    private final String column;
    private final Set<Long> values;

    /** A delete of the rows that have one of the values in a column of integers. */
    RowDeletes(FileStoreTable table, String column, Collection<? extends Number> values) {
        this.table = table;
        this.column = column;
        this.values = values.stream().map(Number::longValue).collect(Collectors.toSet());
    }

    /** One commit. */
    void run() throws Exception {
        if (table.coreOptions().dataEvolutionEnabled()) {
            throw new UnsupportedOperationException("no deletes in tables with data evolution");
        } else if (!table.primaryKeys().isEmpty()) {
            byRecords();
        } else if (table.coreOptions().deletionVectorsEnabled()) {
            byVectors();
        } else {
            byRewriting();
        }
    }

    /** A key that is already there needs no index: its bucket is where it was found. */
    private void byRecords() throws Exception {
        ReadBuilder builder = table.newReadBuilder();
        try (KeyWrites.Job job = new KeyWrites.Job(table)) {
            for (Split split : builder.newScan().plan().splits()) {
                int bucket = ((DataSplit) split).bucket();
                try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
                    reader.forEachRemaining(
                            row -> {
                                if (isDeleted(row, table.rowType())) {
                                    row.setRowKind(RowKind.DELETE);
                                    job.add(row, bucket);
                                }
                            });
                }
            }
            job.commit(job.prepare());
        }
    }

    private void byVectors() throws Exception {
        Snapshot snapshot = table.snapshotManager().latestSnapshot();
        Map<List<Object>, BaseAppendDeleteFileMaintainer> maintainers = new HashMap<>();
        for (DataSplit split : splitsOfOneFile(table.newReadBuilder())) {
            DeletionVector vector = vectorOf(split);
            if (!vector.isEmpty()) {
                maintainers
                        .computeIfAbsent(
                                List.of(split.partition(), split.bucket()),
                                key -> maintainer(snapshot, split))
                        .notifyNewDeletionVector(split.dataFiles().get(0).fileName(), vector);
            }
        }
        List<CommitMessage> messages = new ArrayList<>();
        for (BaseAppendDeleteFileMaintainer maintainer : maintainers.values()) {
            List<IndexFileMeta> added = new ArrayList<>();
            List<IndexFileMeta> removed = new ArrayList<>();
            for (IndexManifestEntry entry : maintainer.persist()) {
                (entry.kind() == FileKind.ADD ? added : removed).add(entry.indexFile());
            }
            messages.add(
                    new CommitMessageImpl(
                            maintainer.getPartition(),
                            maintainer.getBucket(),
                            null,
                            new DataIncrement(List.of(), List.of(), List.of(), added, removed),
                            CompactIncrement.emptyIncrement()));
        }
        KeyWrites.commit(table, messages);
    }

    private BaseAppendDeleteFileMaintainer maintainer(Snapshot snapshot, DataSplit split) {
        IndexFileHandler handler = table.store().newIndexFileHandler();
        return table.bucketMode() == BucketMode.BUCKET_UNAWARE
                ? BaseAppendDeleteFileMaintainer.forUnawareAppend(
                        handler, snapshot, split.partition())
                : BaseAppendDeleteFileMaintainer.forBucketedAppend(
                        handler, snapshot, split.partition(), split.bucket());
    }

    private DeletionVector vectorOf(DataSplit split) throws Exception {
        DeletionVector vector =
                table.coreOptions().deletionVectorBitmap64()
                        ? new Bitmap64DeletionVector()
                        : new BitmapDeletionVector();
        try (RecordReader<InternalRow> reader = table.newRead().createReader(split)) {
            RecordReader.RecordIterator<InternalRow> batch;
            while ((batch = reader.readBatch()) != null) {
                FileRecordIterator<InternalRow> located = (FileRecordIterator<InternalRow>) batch;
                InternalRow row;
                while ((row = located.next()) != null) {
                    if (isDeleted(row, table.rowType())) {
                        vector.delete(located.returnedPosition());
                    }
                }
                located.releaseBatch();
            }
        }
        return vector;
    }

    /** Files with rows to delete are written again without them; the others keep their ids. */
    private void byRewriting() throws Exception {
        RowType type =
                table.coreOptions().rowTrackingEnabled()
                        ? SpecialFields.rowTypeWithRowTracking(table.rowType())
                        : table.rowType();
        ReadBuilder builder = table.newReadBuilder().withReadType(type);
        List<CommitMessage> messages = new ArrayList<>();
        // What the writer compacted on its own could be what is deleted here.
        try (KeyWrites.Job job = new KeyWrites.Job(table.copy(Map.of("write-only", "true")))) {
            job.write.withWriteType(type);
            for (DataSplit split : splitsOfOneFile(builder)) {
                if (rows(builder, split, type, true).isEmpty()) {
                    continue;
                }
                rows(builder, split, type, false).forEach(job::add);
                messages.add(
                        new CommitMessageImpl(
                                split.partition(),
                                split.bucket(),
                                split.totalBuckets(),
                                new DataIncrement(List.of(), split.dataFiles(), List.of()),
                                CompactIncrement.emptyIncrement()));
            }
            messages.addAll(job.prepare());
        }
        KeyWrites.commit(table, messages);
    }

    private List<InternalRow> rows(
            ReadBuilder builder, DataSplit split, RowType type, boolean deleted) throws Exception {
        List<InternalRow> found = new ArrayList<>();
        try (RecordReader<InternalRow> reader = builder.newRead().createReader(split)) {
            reader.forEachRemaining(
                    row -> {
                        if (isDeleted(row, type) == deleted) {
                            found.add(Canonical.row(Canonical.line(RowKind.INSERT, row, type), type));
                        }
                    });
        }
        return found;
    }

    private static List<DataSplit> splitsOfOneFile(ReadBuilder builder) {
        List<DataSplit> splits = new ArrayList<>();
        for (Split split : builder.newScan().plan().splits()) {
            for (DataFileMeta file : ((DataSplit) split).dataFiles()) {
                splits.add(((DataSplit) split).filterDataFile(file::equals).get());
            }
        }
        return splits;
    }

    private boolean isDeleted(InternalRow row, RowType type) {
        int place = type.getFieldIndex(column);
        return !row.isNullAt(place) && values.contains(row.getLong(place));
    }
}
