"""What Celery is told for each kind of broker."""

import pytest

from workers.broker.celeryconfig import celery_settings
from workers.broker.connection import broker_settings
from workers.errors import SettingsError
from workers.settings import Settings, broker_beside


def test_one_redis_keeps_its_url_and_is_given_time_outs() -> None:
    settings = broker_settings("rediss://:secret@db.example:6380/1?ssl_ca_certs=/ca.pem")
    assert settings["broker_url"] == "rediss://:secret@db.example:6380/1?ssl_ca_certs=/ca.pem"
    options = settings["broker_transport_options"]
    assert min(options[name] for name in ("socket_timeout", "socket_connect_timeout", "health_check_interval")) > 1


def test_rabbitmq_is_told_nothing_that_is_meant_for_redis() -> None:
    settings = celery_settings(Settings(redis_url="redis://db.example", broker_url="amqp://mq.example//"))
    assert settings["broker_transport_options"] == {"confirm_publish": True}
    assert settings["worker_disable_prefetch"] is False
    assert {queue.queue_arguments["x-queue-type"] for queue in settings["task_queues"]} == {"quorum"}


def test_redis_is_told_nothing_that_is_meant_for_rabbitmq() -> None:
    settings = celery_settings(Settings(redis_url="redis://db.example/0"))
    assert settings["broker_url"] == "redis://db.example/1"
    assert not any(queue.queue_arguments for queue in settings["task_queues"])


def test_sentinels_are_named_in_celery_s_spelling() -> None:
    settings = broker_settings("redis+sentinel://mara:p%2Fw@one:26379,[::1]:26380/mesh/2?sentinel_password=s")
    assert settings["broker_url"] == "sentinel://mara:p%2Fw@one:26379/2;sentinel://mara:p%2Fw@[::1]:26380/2"
    options = settings["broker_transport_options"]
    assert options["master_name"] == "mesh"
    assert options["sentinel_kwargs"]["password"] == "s"
    assert "broker_use_ssl" not in settings


def test_sentinels_behind_tls_check_certificates_unless_told_otherwise() -> None:
    settings = broker_settings("rediss+sentinel://one:26379/mesh?ssl_ca_certs=/ca.pem")
    assert settings["broker_use_ssl"] == {"ssl_cert_reqs": "required", "ssl_ca_certs": "/ca.pem"}


def test_a_store_lends_its_next_database_whatever_its_kind() -> None:
    assert broker_beside("redis://db.example/3") == "redis://db.example/4"
    assert broker_beside("redis+sentinel://one:26379,two:26379/mesh") == "redis+sentinel://one:26379,two:26379/mesh/1"
    assert broker_beside("redis+sentinel://one:26379/mesh/4") == "redis+sentinel://one:26379/mesh/5"
    assert broker_beside("redis://db.example?db=3&ssl_ca_certs=/ca.pem") == "redis://db.example/4?ssl_ca_certs=/ca.pem"
    assert broker_beside("redis://db.example/0?socket_timeout=5&password=p%40") == "redis://:p%40@db.example/1"
    assert broker_beside("redis://old:pw@db.example:7/3?username=jarvis") == "redis://jarvis:pw@db.example:7/4"
    with pytest.raises(SettingsError, match="set JARVIS_BROKER_URL"):
        broker_beside("redis+cluster://one:6379")


@pytest.mark.parametrize("url", ["redis+cluster://one:6379", "redis+sentinel://one:26379", "radish://one:6379", "//one"])
def test_a_broker_that_celery_cannot_use_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="JARVIS_BROKER_URL") as refused:
        broker_settings(url.replace("//", "//:hunter2@"))
    assert "hunter2" not in str(refused.value)
