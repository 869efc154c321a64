import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Uses a cluster with Kafka's own client: SERVERS COUNT PROTOCOL RESULT. */
public class ServedClient {
    static final int PARTITIONS = 3, TRANSACTIONS = 20, PER_TRANSACTION = 50, ABORTED_EVERY = 5;
    static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], protocol = arguments[2];
        int count = Integer.parseInt(arguments[1]);
        Map<String, Object> figures = new LinkedHashMap<>();
        long began = System.nanoTime();
        figures.put("acked", produce(servers, count));
        long produced = System.nanoTime();
        consume(servers, count, protocol, figures);
        long consumed = System.nanoTime();
        transactions(servers, figures);
        figures.put("produced_s", (produced - began) / 10_000_000 / 100.0);
        figures.put("consumed_s", (consumed - produced) / 10_000_000 / 100.0);
        StringJoiner fields = new StringJoiner(", ", "{", "}");
        figures.forEach((name, value) -> fields.add("\"" + name + "\": " + value));
        Files.writeString(Path.of(arguments[3]), fields.toString());
    }

    static Properties settings(String servers, String clientId, String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("client.id", clientId);
        for (int place = 0; place < more.length; place += 2) settings.put(more[place], more[place + 1]);
        return settings;
    }

    static KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Properties settings) {
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static int produce(String servers, int count) {
        AtomicInteger acked = new AtomicInteger();
        try (KafkaProducer<String, String> producer = producer(settings(servers, "producer"))) {
            for (int number = 0; number < count; number++)
                producer.send(
                    new ProducerRecord<>("plain", number % PARTITIONS, null, "" + number),
                    (metadata, error) -> { if (error == null) acked.incrementAndGet(); });
        }
        return acked.get();
    }

    static KafkaConsumer<String, String> member(String servers, String protocol, int number) {
        KafkaConsumer<String, String> member = consumer(settings(servers, "member-" + number,
            "group.id", "group", "auto.offset.reset", "earliest", "group.protocol", protocol, "max.poll.records", "2000"));
        member.subscribe(List.of("plain"));
        return member;
    }

    static void consume(String servers, int count, String protocol, Map<String, Object> figures) {
        List<KafkaConsumer<String, String>> members = new ArrayList<>(List.of(member(servers, protocol, 0)));
        Set<String> seen = new HashSet<>();
        boolean shared = false;
        while (seen.size() < count || !shared) {
            if (members.size() == 1 && seen.size() > count / 3) members.add(member(servers, protocol, 1));
            for (KafkaConsumer<String, String> member : members)
                for (ConsumerRecord<String, String> each : member.poll(POLL)) seen.add(each.value());
            shared |= members.size() == 2 && members.stream().noneMatch(member -> member.assignment().isEmpty());
        }
        members.forEach(KafkaConsumer::close);
        Set<TopicPartition> partitions = new HashSet<>();
        for (int number = 0; number < PARTITIONS; number++) partitions.add(new TopicPartition("plain", number));
        long committed = 0;
        try (KafkaConsumer<String, String> asking = consumer(settings(servers, "asking", "group.id", "group"))) {
            for (OffsetAndMetadata each : asking.committed(partitions).values()) committed += each == null ? 0 : each.offset();
        }
        figures.put("consumed", seen.size());
        figures.put("shared", shared);
        figures.put("committed", committed);
    }

    static void transactions(String servers, Map<String, Object> figures) {
        try (KafkaProducer<String, String> producer = producer(settings(servers, "payer", "transactional.id", "pay"))) {
            producer.initTransactions();
            for (int number = 0; number < TRANSACTIONS; number++) {
                producer.beginTransaction();
                for (int place = 0; place < PER_TRANSACTION; place++)
                    producer.send(new ProducerRecord<>("paid", number + "-" + place));
                if (number % ABORTED_EVERY != 0) {
                    producer.commitTransaction();
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
        }
        TopicPartition paid = new TopicPartition("paid", 0);
        int read = 0, committed = (TRANSACTIONS - TRANSACTIONS / ABORTED_EVERY) * PER_TRANSACTION;
        long end, until = System.nanoTime() + 60_000_000_000L;
        try (KafkaConsumer<String, String> reader = consumer(settings(servers, "auditor", "isolation.level", "read_committed"))) {
            reader.assign(List.of(paid));
            reader.seekToBeginning(List.of(paid));
            while (read < committed && System.nanoTime() < until) read += reader.poll(POLL).count();
            end = reader.endOffsets(List.of(paid)).get(paid);
        }
        figures.put("read_committed", read);
        figures.put("paid_end", end);
    }
}
