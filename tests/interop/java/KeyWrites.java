import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.KeyValue;
import org.apache.paimon.KeyValueFileStore;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.io.KeyValueFileReaderFactory;
import org.apache.paimon.manifest.BucketEntry;
import org.apache.paimon.postpone.BucketFiles;
import org.apache.paimon.postpone.PostponeBucketFileStoreWrite;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.BucketMode;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.PostponeUtils;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.RowType;

/** Writes and compacts tables with the parts that the Flink actions of Paimon use. */
final class KeyWrites {
    static final String USER = "java-judge";

    private KeyWrites() {}

    /**
     * Write rows of the canonical form, and what the writer compacts on its own, in one commit. Where
     * keys move between partitions, an engine around Java finds out where they are; here the caller
     * does, and all rows go to bucket 0 of their partition.
     */
    static void write(FileStoreTable table, List<List<Object>> lines) throws Exception {
        boolean isPlaced = table.bucketMode() == BucketMode.KEY_DYNAMIC;
        try (Job job = new Job(table)) {
            for (List<Object> line : lines) {
                InternalRow row = Canonical.row(line, table.rowType());
                if (isPlaced) {
                    job.add(row, 0);
                } else {
                    job.add(row);
                }
            }
            job.commit(job.prepare());
        }
    }

    /** Compact every bucket; rows that were postponed go to their buckets before that. */
    static void compact(FileStoreTable table, boolean full) throws Exception {
        FileStoreTable compacting = table.copy(Map.of("write-only", "false"));
        if (table.coreOptions().bucket() == BucketMode.POSTPONE_BUCKET) {
            spread(compacting);
            return;
        }
        if (table.bucketMode() == BucketMode.BUCKET_UNAWARE) {
            AppendCompaction.compact(compacting, full);
            return;
        }
        try (Job job = new Job(compacting)) {
            for (BucketEntry entry : compacting.newSnapshotReader().bucketEntries()) {
                job.write.compact(entry.partition(), entry.bucket(), full);
            }
            job.commit(job.prepare());
        }
    }

    /** What is in the postponed files: writer, key, sequence number, then the row with its kind. */
    static List<List<Object>> postponed(FileStoreTable table) throws Exception {
        KeyValueFileReaderFactory.Builder readers =
                ((KeyValueFileStore) table.store()).newReaderFactoryBuilder();
        RowType keyType = readers.keyType();
        List<List<Object>> lines = new ArrayList<>();
        for (DataSplit split : postponedSplits(table)) {
            KeyValueFileReaderFactory factory =
                    readers.build(split.partition(), split.bucket(), DeletionVector.emptyFactory());
            for (DataFileMeta file : split.dataFiles()) {
                int writer = PostponeBucketFileStoreWrite.getWriteId(file.fileName());
                try (RecordReader<KeyValue> reader = factory.createRecordReader(file)) {
                    reader.forEachRemaining(
                            record -> {
                                List<Object> line = new ArrayList<>();
                                line.add(writer);
                                line.add(Canonical.canonical(record.key(), keyType));
                                line.add(record.sequenceNumber());
                                line.addAll(
                                        Canonical.line(
                                                record.valueKind(), record.value(), table.rowType()));
                                lines.add(line);
                            });
                }
            }
        }
        return lines;
    }

    /** As the compaction of Flink does it: replay the files, partition by partition. */
    private static void spread(FileStoreTable table) throws Exception {
        Map<BinaryRow, Integer> known = PostponeUtils.getKnownNumBuckets(table);
        List<CommitMessage> messages = new ArrayList<>();
        for (DataSplit split : postponedSplits(table)) {
            int count =
                    known.getOrDefault(
                            split.partition(), table.coreOptions().postponeDefaultBucketNum());
            FileStoreTable real = table.copy(Map.of("bucket", String.valueOf(count)));
            try (Job job = new Job(real)) {
                try (RecordReader<InternalRow> reader = real.newRead().createReader(split)) {
                    reader.forEachRemaining(job::add);
                }
                messages.addAll(settled(real, job.prepare()));
            }
            messages.add(
                    new CommitMessageImpl(
                            split.partition(),
                            split.bucket(),
                            split.totalBuckets(),
                            DataIncrement.emptyIncrement(),
                            new CompactIncrement(split.dataFiles(), List.of(), List.of())));
        }
        commit(PostponeUtils.tableForCommit(table), messages);
    }

    static void commit(FileStoreTable table, List<CommitMessage> messages) throws Exception {
        try (TableCommitImpl commit = table.newCommit(USER)) {
            commit.commit(BatchWriteBuilder.COMMIT_IDENTIFIER, messages);
        }
    }

    private static List<CommitMessage> settled(FileStoreTable table, List<CommitMessage> messages) {
        List<CommitMessage> settled = new ArrayList<>();
        for (CommitMessage message : messages) {
            CommitMessageImpl written = (CommitMessageImpl) message;
            BucketFiles files =
                    new BucketFiles(
                            table.store()
                                    .pathFactory()
                                    .createDataFilePathFactory(written.partition(), written.bucket()),
                            table.fileIO());
            files.update(written);
            settled.add(files.makeMessage(written.partition(), written.bucket()));
        }
        return settled;
    }

    /** The postponed files, one split a partition, in the order in which they are replayed. */
    private static List<DataSplit> postponedSplits(FileStoreTable table) {
        Map<BinaryRow, DataSplit> splits = new LinkedHashMap<>();
        List<Split> found =
                table.newSnapshotReader().withBucket(BucketMode.POSTPONE_BUCKET).read().splits();
        for (Split each : found) {
            DataSplit split = (DataSplit) each;
            List<DataFileMeta> files = new ArrayList<>(split.dataFiles());
            DataSplit before = splits.get(split.partition());
            if (before != null) {
                files.addAll(0, before.dataFiles());
            }
            files.sort(Comparator.comparing(DataFileMeta::creationTime));
            splits.put(
                    split.partition(),
                    DataSplit.builder()
                            .withPartition(split.partition())
                            .withBucket(split.bucket())
                            .withBucketPath(split.bucketPath())
                            .withTotalBuckets(split.totalBuckets())
                            .withDataFiles(files)
                            .isStreaming(true) // record by record, without a merge
                            .build());
        }
        return new ArrayList<>(splits.values());
    }

    /** A writer and the folder that its compactions may use. */
    static final class Job implements AutoCloseable {
        final FileStoreTable table;
        final IOManager disk;
        final TableWriteImpl<?> write;

        Job(FileStoreTable table) throws Exception {
            Path folder = Files.createTempDirectory("paimon-judge-");
            folder.toFile().deleteOnExit();
            this.table = table;
            this.disk = IOManager.create(folder.toString());
            this.write = table.newWrite(USER).withIOManager(disk);
        }

        void add(InternalRow row) {
            try {
                write.write(row);
            } catch (Exception problem) {
                throw new IllegalStateException(problem);
            }
        }

        void add(InternalRow row, int bucket) {
            try {
                write.write(row, bucket);
            } catch (Exception problem) {
                throw new IllegalStateException(problem);
            }
        }

        List<CommitMessage> prepare() throws Exception {
            return write.prepareCommit(true, BatchWriteBuilder.COMMIT_IDENTIFIER);
        }

        void commit(List<CommitMessage> messages) throws Exception {
            KeyWrites.commit(table, messages);
        }

        @Override
        public void close() throws Exception {
            write.close();
            disk.close();
        }
    }
}
