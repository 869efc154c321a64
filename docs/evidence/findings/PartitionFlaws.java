import java.io.File;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import kafka.cluster.DelayedOperations;
import kafka.cluster.Partition;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.server.common.TopicIdPartition;
import org.apache.kafka.server.partition.AlterPartitionListener;
import org.apache.kafka.server.partition.AlterPartitionManager;
import org.apache.kafka.server.purgatory.DelayedOperationPurgatory;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchParams;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogManager;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;
import scala.Option;

/**
 * Two flaws of Kafka 4.4.0 in its own {@code kafka.cluster.Partition}, in a second and without brokers:
 * <pre>java -cp 'JARS/*' PartitionFlaws.java</pre>
 * JARS is the folder with the jars of Kafka 4.4.0; other releases have some of these classes in other packages.
 */
public class PartitionFlaws {
    static final TopicPartition T = new TopicPartition("t", 0);
    static final Uuid TOPIC_ID = Uuid.randomUuid();
    static final long LAG_MAX_MS = 300;
    static final long BROKER_EPOCH = 1;

    /** What the leader asks of the controller: each request waits until somebody answers it. */
    static class Controller implements AlterPartitionManager {
        final List<LeaderAndIsr> asked = new ArrayList<>();
        private CompletableFuture<LeaderAndIsr> answer;

        public void start() { }

        public void shutdown() { }

        public CompletableFuture<LeaderAndIsr> submit(TopicIdPartition partition, LeaderAndIsr wanted) {
            asked.add(wanted);
            answer = new CompletableFuture<>();
            System.out.println("    the leader asks the controller for ISR " + sorted(wanted.isr()));
            return answer;
        }

        /** Accept what was asked for last. */
        LeaderAndIsr accept() {
            LeaderAndIsr wanted = asked.get(asked.size() - 1);
            LeaderAndIsr accepted = wanted.withPartitionEpoch(wanted.partitionEpoch() + 1);
            answer.complete(accepted);
            return accepted;
        }
    }

    final Controller controller = new Controller();
    final Partition partition;

    PartitionFlaws(int broker) throws Exception {
        File folder = Files.createTempDirectory("partition").toFile();
        Properties settings = new Properties();
        settings.put("min.insync.replicas", "2");
        MetadataCache metadata = (MetadataCache) Proxy.newProxyInstance(
            MetadataCache.class.getClassLoader(),
            new Class<?>[] {MetadataCache.class},
            (self, method, arguments) -> switch (method.getName()) {
                case "hasAliveBroker" -> true;
                case "isBrokerFenced", "isBrokerShuttingDown" -> false;
                case "getAliveBrokerEpoch" -> Optional.of(BROKER_EPOCH);
                case "topicConfig", "config" -> settings;
                default -> throw new UnsupportedOperationException(method.getName());
            });
        LogManager logs = new LogManager(
            List.of(folder), List.of(), metadata, new LogConfig(settings), new CleanerConfig(false), 1, 60_000, 60_000, 60_000,
            60_000, 300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, new KafkaScheduler(1),
            new BrokerTopicStats(), new LogDirFailureChannel(1), Time.SYSTEM, false, 0, null);
        AlterPartitionListener listener = new AlterPartitionListener() {
            public void markIsrExpand() { }

            public void markIsrShrink() { }

            public void markFailed() { }
        };
        DelayedOperations delayed = new DelayedOperations(
            Option.apply(TOPIC_ID), T, purgatory("Produce"), purgatory("Fetch"), purgatory("DeleteRecords"), purgatory("ShareFetch"));
        partition = new Partition(
            T, LAG_MAX_MS, broker, () -> BROKER_EPOCH, Time.SYSTEM, listener, delayed, metadata, logs, controller, Option.apply(TOPIC_ID));
    }

    static <O extends org.apache.kafka.server.purgatory.DelayedOperation> DelayedOperationPurgatory<O> purgatory(String name) {
        return new DelayedOperationPurgatory<>(name, 0);
    }

    /** Apply a record of the metadata log in which this broker leads. */
    void makeLeader(int leader, int leaderEpoch, int partitionEpoch, int... isr) {
        PartitionRegistration registration = new PartitionRegistration.Builder()
            .setReplicas(new int[] {0, 1, 2})
            .setDirectories(DirectoryId.unassignedArray(3))
            .setIsr(isr)
            .setLeader(leader)
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setLeaderEpoch(leaderEpoch)
            .setPartitionEpoch(partitionEpoch)
            .build();
        partition.makeLeader(registration, false, (folder, of) -> Optional.empty(), Option.apply(TOPIC_ID), Option.empty());
        System.out.printf("    metadata: leader epoch %d, partition epoch %d, ISR %s%n", leaderEpoch, partitionEpoch, Arrays.toString(isr));
    }

    static List<Integer> sorted(Collection<Integer> brokers) {
        return brokers.stream().sorted().toList();
    }

    /** Append a record with acks=all, as of a producer. */
    void append(String value) {
        MemoryRecords records = MemoryRecords.withRecords(Compression.NONE, new SimpleRecord(value.getBytes()));
        partition.appendRecordsToLeader(
            records, AppendOrigin.CLIENT, -1, RequestLocal.noCaching(), VerificationGuard.SENTINEL, (short) 0);
        System.out.println("    the leader appends " + value);
    }

    /** Have a follower fetch from an offset: it has all records below. */
    void fetch(int follower, long offset, int leaderEpoch) {
        FetchParams parameters = new FetchParams(follower, BROKER_EPOCH, 0, 1, 1 << 20, FetchIsolation.LOG_END, Optional.empty());
        FetchRequest.PartitionData from = new FetchRequest.PartitionData(TOPIC_ID, offset, 0, 1 << 20, Optional.of(leaderEpoch));
        partition.fetchRecords(parameters, from, Time.SYSTEM.milliseconds(), 1 << 20, true, true);
        System.out.printf("    broker %d fetches from offset %d; high watermark %d%n", follower, offset, highWatermark());
    }

    long highWatermark() {
        return partition.localLogOrException().highWatermark();
    }

    static boolean reElectedLeader() throws Exception {
        System.out.println("re-elected-leader: broker 1 leads in epoch 1, hears nothing of epoch 2, and leads again in epoch 3");
        PartitionFlaws one = new PartitionFlaws(1);
        one.makeLeader(1, 1, 1, 0, 1, 2);
        one.append("m0");
        one.fetch(2, 0, 1);
        one.fetch(2, 1, 1);
        System.out.println("    (in epoch 2 broker 2 truncates m0 for the leader 0; broker 1 does not hear of that)");
        one.makeLeader(1, 3, 3, 1, 2);
        long highWatermark = one.highWatermark();
        System.out.printf("    high watermark %d, before any follower has fetched in epoch 3; expected: 0%n", highWatermark);
        return highWatermark == 1;
    }

    static boolean forgottenIsrChange() throws Exception {
        System.out.println("forgotten-isr-change: broker 0 leads, and the metadata log repeats an ISR that it already knows");
        PartitionFlaws zero = new PartitionFlaws(0);
        zero.makeLeader(0, 0, 0, 0, 1, 2);
        zero.append("m0");
        zero.fetch(1, 1, 0);
        zero.fetch(2, 1, 0);
        zero.append("m1");
        zero.fetch(2, 2, 0);
        Thread.sleep(2 * LAG_MAX_MS);
        zero.fetch(2, 2, 0);
        zero.partition.maybeShrinkIsr();
        System.out.println("    the controller accepts ISR " + sorted(zero.controller.accept().isr()) + "; high watermark " + zero.highWatermark());
        zero.append("m2");
        zero.fetch(1, 2, 0);
        zero.makeLeader(0, 0, 1, 0, 2);
        zero.fetch(2, 3, 0);
        long highWatermark = zero.highWatermark();
        LeaderAndIsr accepted = zero.controller.accept();
        System.out.printf(
            "    the controller accepts ISR %s; the leader has ISR %s and high watermark %d; expected: 2, for broker 1 is in the ISR without m2%n",
            sorted(accepted.isr()), sorted(zero.partition.partitionState().isr()), highWatermark);
        return highWatermark == 3 && accepted.isr().contains(1);
    }

    public static void main(String[] arguments) throws Exception {
        boolean areThere = reElectedLeader() & forgottenIsrChange();
        System.out.println(areThere ? "both flaws are there" : "not both flaws are there");
        System.exit(areThere ? 0 : 1);
    }
}
