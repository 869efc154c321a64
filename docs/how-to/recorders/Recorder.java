// Records a KafkaProducer and a KafkaConsumer for `harrow check`.
//
// As a program: java -cp 'libs/*' Recorder.java send|read SERVERS TOPIC HISTORY PROCESS [TRANSACTIONAL_ID]
// To send, it reads lines with a partition and a value, or with `commit` or `abort`.

import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

public final class Recorder {
    private final FileOutputStream file;
    private final int process; // A client that restarts needs a new number.

    Recorder(String path, int process) throws IOException {
        this.file = new FileOutputStream(path, true);
        this.process = process;
    }

    /** Write a line at once, so that all clients of a machine can share the file. */
    void write(String type, String f, Collection<String> value) {
        long time = System.currentTimeMillis() * 1_000_000;
        String line = String.format("{\"process\": %d, \"type\": \"%s\", \"f\": \"%s\", \"value\": %s, \"time\": %d}%n",
                process, type, f, value, time);
        try {
            file.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static String quoted(Object text) {
        return '"' + text.toString().replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    /** Sends unique values to chosen partitions. */
    static final class RecordingProducer {
        private final KafkaProducer<String, String> producer;
        private final Recorder recorder;
        private List<String> sends; // those of the open transaction

        RecordingProducer(KafkaProducer<String, String> producer, Recorder recorder) {
            this.producer = producer;
            this.recorder = recorder;
        }

        void send(String topic, int partition, String value) {
            String send = "[\"send\", " + quoted(topic + "-" + partition) + ", ";
            List<String> transaction = sends;
            recorder.write("invoke", transaction == null ? "send" : "txn", List.of(send + quoted(value) + "]"));
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                String written = error == null ? "[" + metadata.offset() + ", " + quoted(value) + "]" : quoted(value);
                if (transaction != null) {
                    synchronized (transaction) {
                        transaction.add(send + written + "]");
                    }
                } else { // The record may have been stored in spite of an error.
                    recorder.write(error == null ? "ok" : "info", "send", List.of(send + written + "]"));
                }
            });
        }

        void begin() {
            producer.beginTransaction();
            sends = new ArrayList<>();
        }

        void commit() {
            producer.commitTransaction();
            end("ok");
        }

        void abort() {
            producer.abortTransaction();
            end("fail");
        }

        private void end(String type) {
            recorder.write(type, "txn", sends); // All sends have ended.
            sends = null;
        }
    }

    /** Reads topics as a member of a group. */
    static final class RecordingConsumer implements ConsumerRebalanceListener {
        private final KafkaConsumer<String, String> consumer;
        private final Recorder recorder;
        private final Collection<String> assigned = new TreeSet<>();

        RecordingConsumer(KafkaConsumer<String, String> consumer, Recorder recorder, Collection<String> topics) {
            this.consumer = consumer;
            this.recorder = recorder;
            consumer.subscribe(topics, this);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> assigned.add(quoted(partition)));
            writeAssigned();
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            partitions.forEach(partition -> assigned.remove(quoted(partition)));
            writeAssigned();
        }

        private void writeAssigned() {
            recorder.write("invoke", "assign", assigned);
            recorder.write("ok", "assign", assigned);
        }

        ConsumerRecords<String, String> poll(Duration timeout) {
            recorder.write("invoke", "poll", List.of("[\"poll\"]"));
            ConsumerRecords<String, String> records = consumer.poll(timeout);
            String polled = records.partitions().stream().map(partition -> quoted(partition) + ": "
                    + records.records(partition).stream()
                            .map(record -> "[" + record.offset() + ", " + quoted(record.value()) + "]").toList())
                    .collect(Collectors.joining(", ", "{", "}"));
            recorder.write("ok", "poll", List.of("[\"poll\", " + polled + "]"));
            return records;
        }

        void commit() {
            List<String> offsets = consumer.assignment().stream().map(partition ->
                    "[\"commit\", " + quoted(partition) + ", " + consumer.position(partition) + "]").toList();
            recorder.write("invoke", "commit", offsets);
            consumer.commitSync();
            recorder.write("ok", "commit", offsets);
        }
    }

    public static void main(String[] args) throws IOException {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[1]);
        for (String part : List.of("key", "value")) {
            settings.put(part + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(part + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        Recorder recorder = new Recorder(args[3], Integer.parseInt(args[4]));
        if (args[0].equals("read")) {
            settings.put("group.id", args[3]);
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.put("isolation.level", "read_committed");
            try (KafkaConsumer<String, String> library = new KafkaConsumer<>(settings)) {
                RecordingConsumer consumer = new RecordingConsumer(library, recorder, List.of(args[2]));
                while (consumer.poll(Duration.ofSeconds(5)).isEmpty()) {
                    // The first polls may be too early for records.
                }
                while (!consumer.poll(Duration.ofSeconds(5)).isEmpty()) {
                    // Read to the end.
                }
                consumer.commit();
            }
            return;
        }
        boolean isTransactional = args.length > 5;
        if (isTransactional) {
            settings.put("transactional.id", args[5]);
        }
        try (KafkaProducer<String, String> library = new KafkaProducer<>(settings)) {
            RecordingProducer producer = new RecordingProducer(library, recorder);
            if (isTransactional) {
                library.initTransactions();
            }
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                if (words.length == 2) {
                    // close() would wait for half a minute if a transaction had begun and had no sends.
                    if (isTransactional && producer.sends == null) {
                        producer.begin();
                    }
                    producer.send(args[2], Integer.parseInt(words[0]), words[1]);
                    continue;
                }
                if (words[0].equals("commit")) {
                    producer.commit();
                } else {
                    producer.abort();
                }
            }
        }
    }
}
