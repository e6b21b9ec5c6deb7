"""The format of an answer, by the headers of the scraper."""

from __future__ import annotations

from odradek_prometheus.text_format import Format

OPENMETRICS = "application/openmetrics-text"
UTF8 = "allow-utf-8"


def chosen_format(accept: str, *, utf8: bool, created: bool) -> Format:
    """The format that a scraper prefers; the older text format if it names none that is served.

    Args:
        accept: Its header Accept; may be empty.
        utf8: Whether names may have all characters, if the scraper takes them.
        created: Whether the time of the start is shown.
    """
    best, best_weight = Format(openmetrics=False, created=created), 0.0
    for entry in accept.split(","):
        media, *rest = [part.strip() for part in entry.split(";")]
        parameters = dict(part.replace(" ", "").partition("=")[::2] for part in rest)
        is_openmetrics = media.lower() == OPENMETRICS
        if not is_openmetrics and media.lower() not in ("text/plain", "text/*", "*/*"):
            continue
        if is_openmetrics and parameters.get("version", "1.0.0") not in ("0.0.1", "1.0.0"):
            continue
        weight = weight_of(parameters.get("q", "1"))
        if weight > best_weight:
            takes_utf8 = utf8 and parameters.get("escaping") == UTF8
            best, best_weight = Format(is_openmetrics, takes_utf8, created), weight
    return best


def weight_of(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a scraper takes gzip, by its header Accept-Encoding."""
    for entry in accept_encoding.lower().split(","):
        coding, *rest = [part.strip() for part in entry.split(";")]
        if coding in ("gzip", "*"):
            weights = [part.removeprefix("q=") for part in rest if part.startswith("q=")]
            return weight_of(weights[0]) > 0 if weights else True
    return False
