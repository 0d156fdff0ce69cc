"""Name of a repository -> its files, or ranges of their bytes; the one place that uses the network.

Where to ask, with which token, what is cached and what may be asked at all is huggingface_hub's:
HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE are honoured as its users expect.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from normscope.errors import FailureKind, NormscopeError

_RETRIES = 2
"""How often a range is asked for again, after one and two seconds."""
_LOGIN = "log in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository of the Hub at one revision."""

    target: str
    name: str
    revision: str | None
    offline: bool


def repository_file(repository: Repository, name: str) -> Path | None:
    """Return one file, from the cache or the Hub; None where the repository has none.

    Raises `NormscopeError` that tells apart what is missing, closed to the user, and unreachable.
    """
    import huggingface_hub

    with _translated(repository):
        cached = huggingface_hub.try_to_load_from_cache(
            repository.name, name, revision=repository.revision
        )
        if isinstance(cached, str):
            return Path(cached)
        if cached is not None:  # the cache knows that the repository lacks the file
            return None
        _require_network(repository)
        try:
            return Path(
                huggingface_hub.hf_hub_download(repository.name, name, revision=repository.revision)
            )
        except huggingface_hub.errors.LocalEntryNotFoundError:
            raise
        except huggingface_hub.errors.EntryNotFoundError:
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRange:
    """Some bytes of a file, and how many the file has in all."""

    content: bytes
    size: int


def file_range(repository: Repository, name: str, start: int, stop: int) -> FetchedRange | None:
    """Fetch the bytes [start, stop) of a file; None where the repository has none of that name.

    Fewer come back where the file ends before. Raises as `repository_file`, and `corrupt` where
    the server sends something else than it was asked for.
    """
    import huggingface_hub
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_backoff

    _require_network(repository)
    url = huggingface_hub.hf_hub_url(repository.name, name, revision=repository.revision)
    with _translated(repository):
        response = http_backoff(
            "GET",
            url,
            headers={**build_hf_headers(), "Range": f"bytes={start}-{stop - 1}"},
            timeout=huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT,
            max_retries=_RETRIES,
        )
        try:
            hf_raise_for_status(response)
        except huggingface_hub.errors.EntryNotFoundError:
            return None
        size = _size_of_whole(response.headers.get("Content-Range", ""))
        content: bytes = response.content
        if response.status_code != 206 or size is None or len(content) != min(stop, size) - start:
            raise NormscopeError(
                FailureKind.CORRUPT,
                f"{repository.target}: the Hub sent other bytes of {name} than it was asked for",
                "try again, or fetch the checkpoint and name its folder",
            )
        return FetchedRange(content=content, size=size)


def _size_of_whole(content_range: str) -> int | None:
    """Read `bytes 0-7/1234`."""
    whole = content_range.rpartition("/")[2]
    return int(whole) if whole.isdecimal() else None


def _require_network(repository: Repository) -> None:
    import huggingface_hub

    if repository.offline or huggingface_hub.constants.HF_HUB_OFFLINE:
        raise NormscopeError(
            FailureKind.OFFLINE,
            f"{repository.target}: not in the cache, and the network may not be used",
            "drop --offline (or HF_HUB_OFFLINE), or give a local directory",
        )


# What went wrong, in the words of the person who typed the target.


@contextmanager
def _translated(repository: Repository) -> Iterator[None]:
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise _gated(repository) from error
    except errors.RevisionNotFoundError as error:
        raise NormscopeError(
            FailureKind.NOT_FOUND,
            f"{repository.target}: the repository has no revision {repository.revision}",
            "name a branch, a tag or a commit of it: org/name@main",
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise _no_repository(repository) from error
    except errors.OfflineModeIsEnabled as error:
        raise _unreachable(repository) from error
    except errors.HfHubHTTPError as error:
        raise _refused(repository, error.response.status_code) from error
    except (OSError, _client_errors()) as error:
        # A file that is not in the cache hides why it could not be fetched.
        cause = error.__cause__
        if isinstance(cause, errors.HfHubHTTPError):
            raise _refused(repository, cause.response.status_code) from error
        raise _unreachable(repository) from error


def _client_errors() -> type[Exception]:
    """Return what huggingface_hub's HTTP client raises where it reaches no server."""
    from huggingface_hub.errors import HTTPError

    return HTTPError


def _gated(repository: Repository) -> NormscopeError:
    from huggingface_hub import constants, get_token

    place = f"{constants.ENDPOINT}/{repository.name}"
    if get_token() is None:
        return NormscopeError(
            FailureKind.GATED,
            f"{repository.target}: access to the repository is restricted, and no token is set",
            f"ask for access at {place}, then {_LOGIN}",
        )
    return NormscopeError(
        FailureKind.GATED,
        f"{repository.target}: access to the repository is restricted, and your token has none",
        f"ask for access at {place}",
    )


def _no_repository(repository: Repository) -> NormscopeError:
    """Tell a private repository from a missing one as far as the Hub itself does."""
    from huggingface_hub import get_token

    if get_token() is None:
        return NormscopeError(
            FailureKind.NOT_FOUND,
            f"{repository.target}: no such path here, and no public repository of that name on "
            "the Hub",
            f"check the name; if the repository is private, {_LOGIN}",
        )
    return NormscopeError(
        FailureKind.NOT_FOUND,
        f"{repository.target}: no such path here, and no repository on the Hub that your token "
        "may see",
        "check the name; if the repository is private, use a token of an account that may read it",
    )


def _refused(repository: Repository, status: int) -> NormscopeError:
    if status == 401:
        return NormscopeError(
            FailureKind.GATED,
            f"{repository.target}: the Hub does not accept the token",
            "log in again with `hf auth login`, or correct HF_TOKEN",
        )
    if status == 403:
        return NormscopeError(
            FailureKind.GATED,
            f"{repository.target}: the token may not read this repository",
            "use a token with read access to it",
        )
    return NormscopeError(
        FailureKind.OFFLINE,
        f"{repository.target}: the Hub answers with an error ({status})",
        "try again later, or give a local directory",
    )


def _unreachable(repository: Repository) -> NormscopeError:
    return NormscopeError(
        FailureKind.OFFLINE,
        f"{repository.target}: not in the cache, and the Hub cannot be reached",
        "check the connection (and HF_ENDPOINT), or give a local directory",
    )
