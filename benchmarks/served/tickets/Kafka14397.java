import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes three records, the second and the third six seconds after the first: SERVERS. */
public class Kafka14397 {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("client.id", "app");
        settings.put("linger.ms", "0");
        settings.put("request.timeout.ms", "10000");
        settings.put("delivery.timeout.ms", "10000");
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.partitionsFor("t");
            send(producer, "A");
            Thread.sleep(6_000);
            send(producer, "B");
            Thread.sleep(200);
            send(producer, "C");
        }
    }

    static void send(KafkaProducer<String, String> producer, String value) {
        producer.send(new ProducerRecord<>("t", value),
            (metadata, error) -> System.out.println(value + ": " + (error == null ? "acknowledged" : error)));
    }
}
