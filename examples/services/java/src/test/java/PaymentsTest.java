import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;

class PaymentsTest {
    static final String SERVERS = System.getenv("KAFKA_BOOTSTRAP_SERVERS");
    static final String SETTINGS = System.getProperty("settings", "payments.properties");
    static final List<String> ORDERS = IntStream.range(0, 5).mapToObj(number -> "order " + number).toList();

    @Test
    void eachOrderIsPaidOnce() throws Exception {
        place(ORDERS);
        strike("{network_ack_loss: {client: payments, skip: 2, count: 1}}");
        try (var service = new Payments(SERVERS, SETTINGS)) {
            assertEquals(ORDERS.stream().map(order -> "paid " + order).toList(), payments());
        }
    }

    static void strike(String faults) throws Exception {
        var uri = URI.create(System.getenv("HARROW_CONTROL") + "/faults");
        var request = HttpRequest.newBuilder(uri).POST(BodyPublishers.ofString(faults)).build();
        var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        assertEquals(201, response.statusCode(), response.body());
    }

    static Properties settings() {
        var settings = new Properties();
        settings.put("bootstrap.servers", SERVERS);
        return settings;
    }

    static void place(List<String> orders) {
        try (var producer = new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
            orders.forEach(order -> producer.send(new ProducerRecord<>("orders", order)));
        }
    }

    /** Returns the payments up to that of the last order. */
    static List<String> payments() {
        var read = new ArrayList<String>();
        try (var consumer = new KafkaConsumer<>(settings(), new StringDeserializer(), new StringDeserializer())) {
            var partitions = List.of(new TopicPartition("payments", 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (!read.contains("paid " + ORDERS.get(ORDERS.size() - 1)))
                consumer.poll(Duration.ofSeconds(1)).forEach(payment -> read.add(payment.value()));
        }
        return read;
    }
}
