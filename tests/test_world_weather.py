"""The weather service: real HTTP, real faults, each with one clear exception."""

import threading

import httpx
import pytest

from course_utils.errors import CourseError
from course_utils.world.weather import STALL, Served, WeatherError, WeatherService, get_weather


@pytest.fixture
def service():
    with WeatherService() as running:
        yield running


def failure(service, city="Paris", timeout_s=2.0):
    with pytest.raises(WeatherError) as caught:
        get_weather(city, service.url, timeout_s)
    return caught.value


def test_the_weather_of_moscow(service):
    expected = {"city": "Moscow", "temp_c": 2, "sky": "cloudy"}
    assert service.get_weather("Moscow") == expected
    assert service.get_weather(" moscow ") == expected
    assert service.log[0] == Served("Moscow", 200)


def test_it_speaks_plain_http(service):
    response = httpx.get(f"{service.url}/weather?city=Atlantis", trust_env=False)
    assert response.status_code == 404
    assert response.json()["error"] == "city_not_found"


def test_an_unknown_city_is_permanent(service):
    error = failure(service, "Atlantis")
    assert (error.code, error.status, error.transient) == ("city_not_found", 404, False)
    assert "Atlantis" in str(error)


def test_a_name_in_other_letters_gets_a_hint(service):
    assert "Latin letters" in str(failure(service, "Москва"))


def test_too_many_requests_says_how_long_to_wait(service):
    service.fail_next(1, 429, retry_after=7)
    error = failure(service)
    assert (error.code, error.transient, error.retry_after) == ("rate_limited", True, 7)
    assert "7 s" in str(error)
    assert service.get_weather("Paris")["city"] == "Paris"


def test_the_next_n_requests_fail_and_then_it_works(service):
    service.fail_next(2)
    assert [failure(service).status for _ in range(2)] == [503, 503]
    assert service.get_weather("Paris")["sky"] == "partly cloudy"
    assert [served.status for served in service.log] == [503, 503, 200]


@pytest.mark.parametrize(("status", "transient"), [(500, True), (403, False), (404, False)])
def test_other_statuses_are_classed(service, status, transient):
    service.fail_next(1, status)
    error = failure(service)
    assert (error.status, error.transient) == (status, transient)


def test_a_stalled_answer_is_a_timeout_not_a_hang(service):
    service.fail_next(1, STALL)
    error = failure(service, timeout_s=0.2)
    assert (error.code, error.transient, error.status) == ("timeout", True, None)
    assert service.get_weather("Paris")["city"] == "Paris"


def test_latency_beyond_the_time_limit_is_a_timeout(service):
    service.latency_s = 5
    assert failure(service, timeout_s=0.2).code == "timeout"


def test_reset_heals_everything(service):
    service.fail_always(503)
    service.fail_next(3, 429)
    service.latency_s = 5
    service.cities["Paris"] = {"temp_c": -40, "sky": "snow"}
    service.reset()
    assert service.get_weather("Paris") == {"city": "Paris", "temp_c": 21, "sky": "partly cloudy"}
    assert len(service.log) == 1


def test_changed_data_is_served(service):
    service.cities["Paris"] = {"temp_c": 5, "sky": "fog"}
    assert service.get_weather("Paris")["temp_c"] == 5


def test_a_stopped_service_cannot_be_reached():
    service = WeatherService().start()
    url = service.url
    service.stop()
    with pytest.raises(WeatherError) as caught:
        get_weather("Paris", url, 1.0)
    assert (caught.value.code, caught.value.transient) == ("unreachable", True)
    with pytest.raises(CourseError, match="not running"):
        service.get_weather("Paris")


def test_stop_lets_stalled_requests_go():
    before = threading.active_count()
    with WeatherService() as service:
        service.fail_next(1, STALL)
        failure(service, timeout_s=0.1)
    for thread in threading.enumerate():
        if "process_request" in thread.name:
            thread.join(timeout=5)
    assert threading.active_count() <= before + 1


def test_a_proxy_in_the_environment_sees_nothing(service, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert service.get_weather("Oslo")["sky"] == "windy"


def test_the_service_prints_nothing(service, capfd):
    service.latency_s = 0.3
    failure(service, timeout_s=0.1)
    service.latency_s = 0.0
    service.get_weather("Oslo")
    assert capfd.readouterr() == ("", "")
