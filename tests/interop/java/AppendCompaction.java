import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactCoordinator;
import org.apache.paimon.append.dataevolution.DataEvolutionCompactTask;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.source.EndOfScanException;

/** Compacts append tables without buckets, with the coordinators that Paimon's engines use. */
final class AppendCompaction {
    private AppendCompaction() {}

    /** One commit; "full" also takes files that are few, or that only a few deletes concern. */
    static void compact(FileStoreTable table, boolean full) throws Exception {
        FileStoreTable compacting =
                full
                        ? table.copy(
                                Map.of(
                                        "compaction.min.file-num", "1",
                                        "compaction.delete-ratio-threshold", "0"))
                        : table;
        List<CommitMessage> messages =
                table.coreOptions().dataEvolutionEnabled()
                        ? groups(compacting)
                        : files(compacting);
        KeyWrites.commit(compacting, messages);
    }

    private static List<CommitMessage> files(FileStoreTable table) throws Exception {
        AppendCompactCoordinator coordinator = new AppendCompactCoordinator(table, false);
        List<CommitMessage> messages = new ArrayList<>();
        BaseAppendFileStoreWrite write =
                ((AppendOnlyFileStore) table.store()).newWrite(KeyWrites.USER);
        if (table.coreOptions().rowTrackingEnabled()) {
            write.withWriteType(SpecialFields.rowTypeWithRowTracking(table.rowType()));
        }
        try {
            while (true) {
                for (AppendCompactTask task : coordinator.run()) {
                    messages.add(task.doCompact(table, write));
                }
            }
        } catch (EndOfScanException all) {
            return messages;
        } finally {
            write.close();
        }
    }

    private static List<CommitMessage> groups(FileStoreTable table) throws Exception {
        DataEvolutionCompactCoordinator coordinator =
                new DataEvolutionCompactCoordinator(table, false, false);
        List<CommitMessage> messages = new ArrayList<>();
        try {
            while (true) {
                for (DataEvolutionCompactTask task : coordinator.plan()) {
                    messages.add(task.doCompact(table, KeyWrites.USER));
                }
            }
        } catch (EndOfScanException all) {
            return messages;
        }
    }
}
