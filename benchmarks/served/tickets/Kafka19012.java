import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Fills batches of topic a, and those of topic b when the first ones have expired: SERVERS. The leader of b answers, so the
 * batches of b are complete in the memory that the request of a is sent from. All batches have the same size.
 */
public class Kafka19012 {
    static final int PARTITIONS = 20, BATCH_BYTES = 64 * 1024;
    static final String FILLING = "x".repeat(BATCH_BYTES - 1_000);

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.id", "app");
        settings.put("enable.idempotence", "false");
        settings.put("max.in.flight.requests.per.connection", "1");
        settings.put("linger.ms", "0");
        settings.put("request.timeout.ms", "6000");
        settings.put("delivery.timeout.ms", "6000");
        settings.put("send.buffer.bytes", "32768");
        settings.put("batch.size", "" + BATCH_BYTES);
        settings.put("max.request.size", "" + BATCH_BYTES * (PARTITIONS + 1));
        settings.put("buffer.memory", "" + BATCH_BYTES * (PARTITIONS + 1));
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.partitionsFor("a");
            producer.partitionsFor("b");
            producer.send(new ProducerRecord<>("a", 0, null, "first"));
            Thread.sleep(1_000);
            send(producer, "a");
            Thread.sleep(6_200);
            send(producer, "b");
            Thread.sleep(3_000);
        }
    }

    static void send(KafkaProducer<String, String> producer, String topic) {
        for (int partition = 0; partition < PARTITIONS; partition++) {
            String value = topic + String.format("%02d", partition);
            producer.send(new ProducerRecord<>(topic, partition, FILLING, value),
                (metadata, error) -> System.out.println(value + ": " + (error == null ? "ok" : error.getMessage())));
        }
    }
}
