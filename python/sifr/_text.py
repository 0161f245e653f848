"""Tokenizers, and texts that a model makes."""

from __future__ import annotations

import json
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from . import _sifr
from ._base import UsageError

Path = Union[str, "os.PathLike[str]"]
#: A conversation, as transformers has it: [{"role": "user", "content": "…"}].
Messages = Sequence[Mapping[str, Any]]


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


class Tokenizer:
    """The tokenizer of a model folder, or a tokenizer.json; the ids are those of the tokenizers
    library. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._tokenizer = _sifr.tokenizer(path)
        self._vocab_size, self._bos, self._eos = self._tokenizer.facts()

    def encode(self, text: str, special: bool = True) -> list[int]:
        """The ids of a text; `special`: with those that the post-processor puts around it."""
        return self._tokenizer.encode(text, special)

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        """The text of ids; bytes that are no whole character become U+FFFD."""
        return self._tokenizer.decode(ids, skip_special)

    def pieces(self, ids: Any, continues: bool = False) -> Iterator[str]:
        """The text that each id completes, as whole characters; `continues`: a text comes before."""
        decoder = self._tokenizer.decoder(continues)
        try:
            for one in ids:
                yield decoder.push(one)
            yield decoder.end()
        finally:
            decoder.close()

    @property
    def vocab_size(self) -> int:
        """The largest id + 1."""
        return self._vocab_size

    @property
    def bos(self) -> int | None:
        """The token that begins a text."""
        return None if self._bos < 0 else self._bos

    @property
    def eos(self) -> int | None:
        """The token that ends a text."""
        return None if self._eos < 0 else self._eos

    def id(self, token: str) -> int | None:
        """The id of a token as its file writes it: "<|endoftext|>", "Ġthe"."""
        found = self._tokenizer.id(token)
        return None if found < 0 else found

    def is_special(self, id: int) -> bool:
        return self._tokenizer.is_special(id)

    def render_chat(
        self,
        messages: Messages,
        *,
        prompt: bool = True,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """A conversation as the text for the model, by the folder's chat template or the one that is
        given. `prompt`: it ends with the beginning of the next answer. Encode it without special
        tokens: it has them."""
        template = _sifr.chat_template(self._path, chat_template, _json(tools), _json(variables))
        try:
            return template.render(json.dumps(list(messages)), prompt)
        finally:
            template.close()

    def close(self) -> None:
        """Gives its memory back."""
        self._tokenizer.close()

    def __enter__(self) -> Tokenizer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Generated(NamedTuple):
    """A text that is done."""

    prompt: int  #: the number of its prompt
    sample: int  #: of that prompt
    text: str  #: without the prompt
    ids: list[int]  #: the prompt's, then the new ones
    prompt_tokens: int
    end: str  #: "length", "eos" or "stop"
    seconds: float


class _Left(Exception):
    """Nobody reads the pieces any more."""


def _iterate(run: Callable[[Callable[..., None]], Any]) -> Iterator[str]:
    """The pieces that `run` tells, on a thread of its own, one by one."""
    pieces: queue.SimpleQueue[Any] = queue.SimpleQueue()
    left = threading.Event()

    def tell(kind: str, *values: Any) -> None:
        if left.is_set():
            raise _Left
        if kind == "piece":
            pieces.put(values[1])

    def work() -> None:
        try:
            run(tell)
            pieces.put(None)
        except BaseException as error:
            pieces.put(error)

    thread = threading.Thread(target=work, name="sifr-generate", daemon=True)
    thread.start()
    try:
        while isinstance(piece := pieces.get(), str):
            yield piece
        if piece is not None:
            raise piece
    finally:
        left.set()
        thread.join()


class Generator:
    """A model that continues texts, on the CPU. `model` is a model folder, a checkpoint or the output
    folder of a run. Numbers that are None are as the folder's generation_config.json says. Used by
    one thread at a time.

    Messages name an option by the program's flag: --top-p is top_p.
    """

    def __init__(
        self,
        model: Path,
        *,
        adapter: Path | None = None,
        precision: str | None = None,
        threads: int = 0,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        min_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        max_new_tokens: int | None = None,
        stop: Sequence[str] = (),
        samples: int = 1,
        batch_size: int = 1,
    ) -> None:
        self._samples = samples
        self._chats: weakref.WeakSet[Chat] = weakref.WeakSet()
        self._generator = _sifr.generator(
            model,
            None if adapter is None else os.fspath(adapter),
            precision,
            threads,
            temperature,
            top_k,
            top_p,
            min_p,
            repetition_penalty,
            seed,
            max_new_tokens,
            (stop,) if isinstance(stop, str) else tuple(stop),
            samples,
            batch_size,
        )

    def _add(self, prompt: str | Messages, chat: bool, special: bool, template: Any) -> None:
        if isinstance(prompt, str):
            self._generator.add(prompt, special, template if chat else None, False)
        else:
            self._generator.add(json.dumps(list(prompt)), special, template, True)

    def _add_all(
        self, prompts: Sequence[str | Messages], chat: bool, special: bool, template: str | None
    ) -> None:
        """All, or none where one is refused."""
        made = None
        if chat or template is not None or not all(isinstance(p, str) for p in prompts):
            made = self._generator.template(template, None, None)
        self._generator.clear()
        try:
            for prompt in prompts:
                self._add(prompt, chat, special, made)
        except BaseException:
            self._generator.clear()
            raise

    def generate(
        self,
        prompts: str | Messages | Sequence[str | Messages],
        *,
        piece: Callable[[int, str], Any] | None = None,
        chat: bool = False,
        special: bool = True,
        chat_template: str | None = None,
    ) -> list[Generated]:
        """Continues texts, one or several. With `chat` a text is a user's message and what is made is
        the answer; a list of messages always is a conversation. `piece` gets the number of a text
        (prompt times samples plus sample) and its next characters, as they are made; an exception of
        it ends the generation. `special`: with what the tokenizer puts around a text."""
        several = _several(prompts)
        self._add_all(several, chat, special, chat_template)
        done: list[Generated] = []

        def tell(kind: str, *values: Any) -> None:
            if kind == "ended":
                done.append(Generated(*values))
            elif piece is not None:
                piece(*values)

        self._generator.run(tell)
        return done

    def stream(
        self,
        prompt: str | Messages,
        *,
        chat: bool = False,
        special: bool = True,
        chat_template: str | None = None,
    ) -> Iterator[str]:
        """The text that continues one prompt, piece by piece, as it is made, on a thread of its own.
        Leaving the loop ends the generation."""
        several = _several(prompt)
        if len(several) != 1 or self._samples > 1:
            raise UsageError(
                f"stream: one prompt and one sample are wanted, not {len(several)} and "
                f"{self._samples}; generate() makes several texts"
            )
        self._add_all(several, chat, special, chat_template)
        return _iterate(self._generator.run)

    def chat(
        self,
        *,
        system: str | None = None,
        context: int = 0,
        chat_template: str | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> Chat:
        """A conversation. `context`: tokens that have room; 0: the model's positions, at most
        4096."""
        template = self._generator.template(chat_template, _json(tools), _json(variables))
        chat = Chat(self._generator.chat(template, system, context))
        self._chats.add(chat)
        return chat

    def close(self) -> None:
        """Gives its memory back, and that of its chats."""
        for chat in list(self._chats):
            chat.close()
        self._generator.close()

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _several(prompts: Any) -> list[Any]:
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, Mapping):
        raise UsageError("prompts: one message; give the messages in a list")
    if isinstance(prompts, (bytes, bytearray)) or not isinstance(prompts, Iterable):
        raise TypeError(f"prompts: a text, messages or a list of them, not {type(prompts).__name__}")
    several = list(prompts)
    if several and isinstance(several[0], Mapping):
        return [several]
    if not several:
        raise UsageError("prompts: none is given")
    for one in several:
        if isinstance(one, (bytes, Mapping)) or not isinstance(one, Iterable):
            raise TypeError(f"prompts: a text or messages are wanted, not {type(one).__name__}")
    return several


class Chat:
    """A conversation, which `Generator.chat` begins. It computes only what is new in it."""

    def __init__(self, chat: _sifr.Chat) -> None:
        self._chat = chat

    def answer(self, message: str, *, piece: Callable[[str], Any] | None = None) -> str:
        """Adds a user's message and the model's answer to it. `piece` gets the answer as it is made.
        After an exception the conversation is as before."""
        return self._chat.answer(message, lambda kind, text, p: piece(p) if piece else None)

    def stream(self, message: str) -> Iterator[str]:
        """The same, piece by piece."""
        return _iterate(lambda tell: self._chat.answer(message, tell))

    def close(self) -> None:
        self._chat.close()


def generate(
    model: Path,
    prompts: str | Messages | Sequence[str | Messages],
    *,
    piece: Callable[[int, str], Any] | None = None,
    chat: bool = False,
    **options: Any,
) -> list[Generated]:
    """Continues texts with a model, once: `Generator(model, **options).generate(prompts)`."""
    with Generator(model, **options) as generator:
        return generator.generate(prompts, piece=piece, chat=chat)
