"""A bug report must not contain secrets."""

import pytest

from harrow.campaigns.record.redaction import keep_secret, sounds_secret, without_secrets

VALUE = "hunter2-of-1957"


@pytest.mark.parametrize(
    "text",
    [
        f"--remote 'sc://h:1/;token={VALUE};x=1' --resume",
        f"--remote sc://h:1/;TOKEN={VALUE}",
        f"--repository https://reader:{VALUE}@mirror.example/maven",
        f"--set sasl.password={VALUE}",
        f"{{'sasl_plain_password': '{VALUE}', 'port': 9092}}",
        f'{{"ssl.key.password": "{VALUE} it\'s"}}',
        f"sasl.password: {VALUE}",
        f'sasl.jaas.config=org.apache.PlainLoginModule required username="u" password="{VALUE}";',
        f"AWS_SECRET_ACCESS_KEY={VALUE}",
        f"api-key = {VALUE}",
        f"option=password={VALUE}",
        f"1http://user:{VALUE}@host",
    ],
)
def test_a_value_is_hidden_if_it_follows_a_name_that_sounds_secret(text: str) -> None:
    assert VALUE not in without_secrets(text, {})


def test_ordinary_text_is_not_hidden() -> None:
    assert without_secrets("sc://h:1/;token=abc;x=1 --resume", {}) == "sc://h:1/;token=...;x=1 --resume"
    assert without_secrets("https://u:p@h/x", {}) == "https://...@h/x"
    for text in ("harrow run standard --seed 7 --set acks=all", "https://h/x@y", "ssh://h:22"):
        assert without_secrets(text, {}) == text


def test_a_long_value_of_a_variable_whose_name_sounds_secret_is_hidden() -> None:
    environ = {"KAFKA_PASSWORD": VALUE, "HOME": "/home/somebody", "USE_TOKENS": "true"}
    assert without_secrets(f"true: {VALUE} in /home/somebody", environ) == "true: ... in /home/somebody"


def test_a_registered_secret_is_hidden_everywhere() -> None:
    keep_secret("from-a-cluster-file")
    assert without_secrets("KafkaError(from-a-cluster-file)", {}) == "KafkaError(...)"


@pytest.mark.parametrize(
    "name", ["sasl.password", "ssl.key.password", "KAFKA_PASSWD", "GITHUB_TOKEN", "sasl.jaas.config"]
)
def test_the_name_of_a_password_token_or_key_sounds_secret(name: str) -> None:
    assert sounds_secret(name)
