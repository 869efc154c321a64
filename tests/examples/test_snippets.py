"""The tests in Java, Go and JavaScript that docs/how-to/serve-tests.md shows pass as printed."""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.examples.toolchains import SERVICES, prepare, prepare_maven, serve
from tests.plain_environment import ROOT

PAGE: Final = (ROOT / "docs" / "how-to" / "serve-tests.md").read_text(encoding="utf-8")
JAVA: Final = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
"""
GO: Final = """
package orders

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)
"""
JAVASCRIPT: Final = """
import test from "node:test";
import { Kafka } from "kafkajs";
"""
PACKAGE: Final = '{"scripts": {"test": "node --test"}, "dependencies": {"kafkajs": "2.2.4"}}'


def snippet(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    file = tmp_path / "orders.yaml"
    (text,) = re.findall(r'```yaml title="orders.yaml"\n(.*?)```', PAGE, re.DOTALL)
    file.write_text(text, encoding="utf-8")
    return file


def test_the_test_in_java_passes(tmp_path: Path, campaign: Path) -> None:
    shutil.copy(SERVICES / "java" / "pom.xml", tmp_path)
    tests = tmp_path / "src" / "test" / "java"
    tests.mkdir(parents=True)
    (tests / "OrdersTest.java").write_text(JAVA + snippet("java"), encoding="utf-8")
    prepare_maven(tmp_path)
    code, printed = serve(tmp_path, campaign, "mvn", "-B", "-o", "test")
    assert code == 0, printed
    assert "Tests run: 1, Failures: 0" in printed
    assert "1 sent: 1 acked" in printed


def test_the_test_in_go_passes(tmp_path: Path, campaign: Path) -> None:
    for name in ("go.mod", "go.sum"):
        shutil.copy(SERVICES / "go" / name, tmp_path)
    (tmp_path / "orders_test.go").write_text(GO + snippet("go"), encoding="utf-8")
    prepare(tmp_path, "go", "mod", "download")
    code, printed = serve(tmp_path, campaign, "go", "test", "-count=1", "./...")
    assert code == 0, printed
    assert "1 sent: 1 acked" in printed


def test_the_test_in_javascript_passes(tmp_path: Path, campaign: Path) -> None:
    (tmp_path / "package.json").write_text(PACKAGE, encoding="utf-8")
    (tmp_path / "orders.test.mjs").write_text(JAVASCRIPT + snippet("js"), encoding="utf-8")
    prepare(tmp_path, "npm", "install", "--no-audit", "--no-fund")
    code, printed = serve(tmp_path, campaign, "npm", "test")
    assert code == 0, printed
    assert "# pass 1" in printed
    assert "1 sent: 1 acked" in printed
