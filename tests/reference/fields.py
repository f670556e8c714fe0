"""Reads the fields of JSON objects strictly: what is wrong, and where."""

import math

REQUIRED = object()


class SpecError(Exception):
    """What is wrong with a spec, and where."""


def need(condition, where, message):
    if not condition:
        raise SpecError(f"{where}: {message}")


def integer(low, high=2**63 - 1):
    def check(value, where):
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        need(good, where, f"is {value!r}, must be an integer from {low} to {high}")
        return value

    return check


def odd(value, where):
    integer(1, 2**16)(value, where)
    need(value % 2 == 1, where, f"is {value}, must be odd")
    return value


def number(accept, description):
    def check(value, where):
        good = isinstance(value, (int, float)) and not isinstance(value, bool)
        need(good and math.isfinite(value) and accept(value), where,
             f"is {value!r}, must be a number {description}")
        return float(value)

    return check


def one_of(*values):
    def check(value, where):
        need(value in values, where, f"is {value!r}, must be one of {', '.join(values)}")
        return value

    return check


def boolean(value, where):
    need(isinstance(value, bool), where, f"is {value!r}, must be true or false")
    return value


def text(value, where):
    need(isinstance(value, str) and value, where, f"is {value!r}, must be a string with characters")
    return value


def per_channel(accept, description):
    check_one = number(accept, description)

    def check(value, where):
        if isinstance(value, list):
            return [check_one(v, f"{where}[{i}]") for i, v in enumerate(value)]
        return check_one(value, where)

    return check


def pair_of_betas(value, where):
    need(isinstance(value, list) and len(value) == 2, where, "must be a list of two numbers")
    return [unit(v, f"{where}[{i}]") for i, v in enumerate(value)]


unit = number(lambda v: 0 <= v < 1, "in [0, 1)")
not_negative = number(lambda v: v >= 0, "of at least 0")


def take(value, where, fields):
    """An object with exactly `fields` (name → (check, default)), defaults filled in."""
    need(isinstance(value, dict), where, "must be an object")
    unknown = sorted(set(value) - set(fields))
    need(not unknown, where, f"has the unknown field {unknown[0] if unknown else ''!r}")
    result = {}
    for name, (check, default) in fields.items():
        if name in value:
            result[name] = check(value[name], f"{where}.{name}")
        else:
            need(default is not REQUIRED, where, f"lacks the field {name!r}")
            result[name] = default
    return result


def take_kind(value, where, kinds, key="kind"):
    """An object whose field `key` selects the other fields."""
    need(isinstance(value, dict), where, "must be an object")
    need(value.get(key) in kinds, f"{where}.{key}",
         f"is {value.get(key)!r}, must be one of {', '.join(kinds)}")
    return take(value, where, {key: (text, REQUIRED), **kinds[value[key]]})
