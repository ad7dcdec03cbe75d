"""What a type checker must see of channels: that of the bus fits the workflow, though neither room knows the other."""

import redis

from bus import ChannelFrame, RedisChannel, open_channel
from workflow import CallbackChannel, Channel, Envelope, JsonStreamAdapter, StreamAdapter, Workflow, sse_frame


def of_redis(client: redis.Redis) -> Channel:
    return RedisChannel(client)


def show(envelope: Envelope) -> str:
    return sse_frame(envelope, id=str(envelope.sequence))


def watched(channel: RedisChannel) -> str:
    return "".join(sse_frame(news, id=news.cursor) for news in channel.watch("w") if isinstance(news, ChannelFrame))


def adapter() -> StreamAdapter:
    return JsonStreamAdapter()


Workflow("w", stream_adapter=JsonStreamAdapter, channel=open_channel("redis://h"))
Workflow("w", stream_adapter=JsonStreamAdapter(), channel=CallbackChannel(show))
Workflow("w", stream_adapter=adapter)
