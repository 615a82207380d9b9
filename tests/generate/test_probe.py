"""The probe: one small request, and messages that say what to do."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.generate.protocol import Answer, EndpointError, Media, Request, Text, Turn
from multimodal_eval.generate.providers import endpoint_model as probing
from multimodal_eval.generate.providers.openai_chat import ChatGenerator, open_generator
from tests.generate.server import Behaviour, Reply, Server, user_text

IMAGE = Media("image", "image/jpeg", b"anything")
AUDIO = Media("audio", "audio/wav", b"anything")


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def generator(url: str, model: str = "tiny", **settings: Any) -> ChatGenerator:
    return open_generator("openai", model, GenerationConfig(model=f"openai:{model}", base_url=url, **settings))


def request(*media: Media, **parameters: Any) -> Request:
    return Request("a", (Turn("user", (*media, Text("hello"))),), Parameters(**parameters))


def refusal(behaviour: Behaviour, *media: Media, model: str = "tiny") -> str:
    with Server(behaviour) as server, pytest.raises(EndpointError) as raised:
        asyncio.run(generator(server.url, model).answer(request(*media)))
    return str(raised.value)


def test_the_probe_comes_first_and_once():
    async def three(asked: ChatGenerator) -> None:
        await asyncio.gather(*(asked.answer(request(temperature=0.5, max_tokens=900)) for _ in range(3)))

    with Server() as server:
        asyncio.run(three(generator(server.url)))
        first, second = (json.loads(body) for body in server.bodies.values())
    assert server.requests == 4
    assert first == {
        "model": "tiny",
        "messages": [{"role": "user", "content": probing.PROMPT}],
        "max_tokens": 16,
        "temperature": 0.5,  # a parameter that the model refuses is found here
    }
    assert user_text(second) == "hello"


def test_a_probe_that_failed_is_made_again_in_another_event_loop():
    class Once(probing.Endpoint):
        model, base_url, asked = "tiny", "http://localhost", 0

        async def ask(self, request: Request) -> Answer:
            self.asked += 1
            await asyncio.sleep(0)  # the others wait meanwhile
            if self.asked <= 2:
                raise EndpointError("the key is not set")
            return Answer("ok")

    async def two() -> Any:
        return await asyncio.gather(*(probe.before(request()) for _ in range(2)), return_exceptions=True)

    endpoint = Once()
    probe = probing.Probe(endpoint)
    assert [str(error) for error in asyncio.run(two())] == ["the key is not set"] * 2
    assert asyncio.run(two()) == [None, None]
    assert endpoint.asked == 3


def test_no_probe():
    with Server() as server:
        asyncio.run(generator(server.url, use_probe=False).answer(request()))
    assert server.requests == 1


def test_media_of_the_probe_are_those_of_the_first_request():
    with Server() as server:
        asyncio.run(generator(server.url).answer(request(IMAGE, AUDIO)))
        parts = json.loads(next(iter(server.bodies.values())))["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url", "input_audio", "text"]


def test_the_image_is_an_image_and_the_audio_is_audio():
    import io
    import wave

    from PIL import Image

    image, audio = map(probing._sample, ("image", "audio"))
    assert Image.open(io.BytesIO(image.content or b"")).size == (28, 28)
    with wave.open(io.BytesIO(audio.content or b"")) as file:
        assert file.getnframes() == 8_000


def test_no_server():
    with Server() as server:
        url = server.url
    with pytest.raises(EndpointError, match=rf"no server answers at {url}.* \(connection refused\). Is it running\?"):
        asyncio.run(generator(url).answer(request()))


def test_a_missing_key():
    assert "Set $OPENAI_API_KEY" in refusal(Behaviour(key="a-long-secret"))


def test_a_wrong_model_is_told_which_there_are():
    message = refusal(Behaviour(models=("one", "two")), model="three")
    assert message == (
        "the endpoint has no model 'three' (HTTP 404: The model `three` does not exist.). The server has: one, two"
    )


def test_a_long_list_of_models_is_cut():
    message = refusal(Behaviour(models=tuple(f"m{number}" for number in range(14))), model="three")
    assert message.endswith("m11 and 2 more")


def test_a_server_without_a_list_of_models():
    message = refusal(Behaviour(models=("one",), lists_models=False), model="three")
    assert "has no model 'three'" in message
    assert "The server has" not in message


def test_a_wrong_path():
    with Server() as server, pytest.raises(EndpointError, match=r"does not exist .*Check the base URL"):
        asyncio.run(generator(server.url.replace("/v1", "/v2")).answer(request()))


def test_one_malformed_reply_is_not_the_end():
    broken = lambda _, attempt: Reply(fault="wrong_json") if attempt < 2 else Reply("ok")  # noqa: E731
    with Server(Behaviour(script=broken)) as server:
        asyncio.run(probing.probe(generator(server.url), request()))
        assert server.requests == 3


def test_a_web_site_instead_of_an_endpoint():
    message = refusal(Behaviour(faults={"html": 1.0}))
    assert "is not an endpoint of this kind" in message
    assert "<html>" in message


def test_a_model_without_vision():
    message = refusal(Behaviour(has_vision=False), IMAGE)
    assert "'tiny' does not accept images (HTTP 400: tiny is not a multimodal model)" in message


def test_a_refused_parameter():
    message = refusal(
        Behaviour(script=lambda *_: Reply(status=400, raw=b'{"error":{"message":"temperature is not supported"}}'))
    )
    assert "refuses a test request: HTTP 400: temperature is not supported." in message
    assert "set `use_probe: false`" in message


def test_a_limit_of_tokens_that_is_too_low_to_reason_is_not_a_fault():
    def script(body: dict[str, Any], _: int) -> Reply:
        if user_text(body) == probing.PROMPT:
            return Reply(status=400, raw=b'{"error":{"message":"max_tokens or model output limit was reached"}}')
        return Reply("fine")

    with Server(Behaviour(script=script)) as server:
        assert asyncio.run(generator(server.url).answer(request())).text == "fine"


@pytest.mark.parametrize("fault", ["rate_limit", "error", "reset", "unavailable", "hang"])
def test_an_endpoint_that_is_busy_passes(fault, monkeypatch):
    monkeypatch.setattr(probing, "SECONDS", 0.3)

    def script(body: dict[str, Any], _: int) -> Reply:
        return Reply(fault=fault) if user_text(body) == probing.PROMPT else Reply("fine")

    with Server(Behaviour(script=script)) as server:
        assert asyncio.run(generator(server.url).answer(request())).text == "fine"


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(), True),
        (Behaviour(script=lambda *_: Reply(status=400, raw=b'{"error":{"message":"too short"}}')), True),
        (Behaviour(faults={"error": 1.0}), False),
        (Behaviour(faults={"wrong_json": 1.0}), False),
        (Behaviour(key="another-key"), False),
    ],
)
def test_an_endpoint_is_alive_if_it_deals_with_a_small_request(behaviour, expected):
    with Server(behaviour) as server:
        assert asyncio.run(generator(server.url).is_alive()) is expected
        assert server.requests == (0 if behaviour.key else 1)


def test_an_endpoint_that_is_gone_is_not_alive():
    with Server() as server:
        url = server.url
    assert not asyncio.run(generator(url).is_alive())
