"""A session for notebooks and scripts."""

import logging

import pytest
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import emberlake.spark
from emberlake.spark import starting
from emberlake.spark.starting import chosen_settings


def test_a_local_session_listens_on_this_machine_and_shows_errors_only() -> None:
    settings = chosen_settings("local[*]", {})

    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert "quiet-log4j2.properties" in settings["spark.driver.extraJavaOptions"]


def test_every_setting_can_be_overridden() -> None:
    asked = {
        "spark.driver.host": "10.0.0.1",
        "spark.ui.enabled": "true",
        "spark.log.level": "INFO",
        "spark.driver.extraJavaOptions": "-Xss4m",
    }

    settings = chosen_settings("local[*]", asked)

    assert {key: settings[key] for key in asked} == asked


def test_options_of_the_jvm_stay_beside_those_for_the_log() -> None:
    settings = chosen_settings("local[2]", {"spark.driver.extraJavaOptions": "-Xss4m"})

    assert settings["spark.driver.extraJavaOptions"].startswith("-Xss4m -Dlog4j2")


def test_errors_are_not_logged_before_they_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_REPEATING_LOGGERS", ("LoggerOfATest",))
    logger = PySparkLogger.getLogger("LoggerOfATest")

    starting._quiet_errors()
    assert logger.level == logging.CRITICAL
    logger.setLevel(logging.INFO)
    starting._quiet_errors()
    assert logger.level == logging.INFO  # as somebody wanted it


def test_executors_of_a_cluster_reach_the_driver() -> None:
    assert "spark.driver.host" not in chosen_settings("spark://host:7077", {})


def test_a_session_that_runs_is_returned_with_the_settings_that_can_change(
    spark: SparkSession,
) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")

    same = emberlake.spark.session("local[2]", spark_sql_shuffle_partitions=7)

    assert same is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    spark.conf.set("spark.sql.shuffle.partitions", before)
