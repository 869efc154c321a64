import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes a payment for each order, with the settings in a file for its producer. */
public class Payments implements Runnable, AutoCloseable {
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;
    private final Thread thread = new Thread(this);
    private volatile boolean stopped;

    public Payments(String servers, String file) throws Exception {
        var reading = common(servers);
        reading.put("group.id", "payments");
        reading.put("auto.offset.reset", "earliest");
        reading.put("enable.auto.commit", "false");
        consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer());
        var writing = common(servers);
        try (var reader = new FileReader(file)) { writing.load(reader); }
        producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
        thread.start();
    }

    private static Properties common(String servers) {
        var settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("client.id", "payments");
        return settings;
    }

    @Override
    public void run() {
        consumer.subscribe(List.of("orders"));
        while (!stopped) {
            for (var order : consumer.poll(Duration.ofMillis(100))) {
                producer.send(new ProducerRecord<>("payments", "paid " + order.value()));
                producer.flush();
            }
            consumer.commitSync();
        }
        consumer.close();
        producer.close();
    }

    @Override
    public void close() throws InterruptedException {
        stopped = true;
        thread.join();
    }
}
