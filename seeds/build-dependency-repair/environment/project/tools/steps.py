"""The build steps. Each returns the text of its target; files are opened through `read` only."""
import re
import zlib

INCLUDE = re.compile(r'^#include "([^"]+)"$')
DEFINE = re.compile(r"^#define (\w+) (.+)$")
WORD = re.compile(r'"[^"]*"|\b[A-Za-z_]\w*\b')


class StepError(Exception):
    pass


def rows(text):
    """The words of each line that is neither empty nor a comment."""
    return [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"]


def macros(text):
    return dict(match.groups() for match in map(DEFINE.match, text.splitlines()) if match)


def step_registers(read, needs, source, base):
    """NAME WIDTH COUNT -> one #define per register block, laid out from `base`, 4-aligned."""
    address, lines, count = int(base, 0), [], 0
    for name, width, number in rows(read(source)):
        lines.append(f"#define REG_{name} 0x{address:04X}")
        address += -(-int(width) * int(number) // 4) * 4
        count += int(number)
    lines += [f"#define REG_END 0x{address:04X}", f"#define REG_COUNT {count}"]
    return "\n".join(lines) + "\n"


def step_limits(read, needs, source, header):
    """NAME VALUE, where VALUE may be NUMBER or NUMBER*MACRO with a macro of `header`."""
    known, lines = macros(read(header)), []
    for name, value in rows(read(source)):
        number, _, macro = value.partition("*")
        if macro and macro not in known:
            raise StepError(f"{source}: {macro} is not in {header}")
        total = int(number) * (int(known[macro], 0) if macro else 1)
        lines.append(f"#define LIMIT_{name} {total}")
    return "\n".join(lines) + "\n"


def step_crc(read, needs, source):
    """poly, init -> the 16 entries of a CRC-8 nibble table, most significant bit first."""
    values = {key: int(value, 0) for key, value in rows(read(source))}
    lines = [f"#define CRC_INIT 0x{values['init']:02X}"]
    for nibble in range(16):
        crc = nibble << 4
        for _ in range(4):
            crc = ((crc << 1) ^ values["poly"] if crc & 0x80 else crc << 1) & 0xFF
        lines.append(f"#define CRC_T{nibble:X} 0x{crc:02X}")
    return "\n".join(lines) + "\n"


def step_version(read, needs, source):
    """key value -> VERSION_<KEY>, and VERSION_WORD as one number."""
    values = dict(rows(read(source)))
    word = 0
    for key in ("major", "minor", "patch"):
        word = word << 8 | int(values[key])
    lines = [f"#define VERSION_{key.upper()} {value}" for key, value in values.items()]
    return "\n".join([*lines, f"#define VERSION_WORD 0x{word:06X}"]) + "\n"


def step_expand(read, needs, source):
    """Include and replace macros: every file is included once, in the order of the text."""
    seen, known, lines = set(), {}, []

    def take(name):
        if name in seen:
            return
        seen.add(name)
        for line in read(name).splitlines():
            include, define = INCLUDE.match(line), DEFINE.match(line)
            if include:
                take(include.group(1))
            elif define:
                known[define.group(1)] = define.group(2)
            elif line.strip() and not line.startswith("//"):
                lines.append(WORD.sub(lambda m: known.get(m.group(), m.group()), line))

    take(source)
    left = sorted(set(re.findall(r"\b(?:REG|LIMIT|CRC|VERSION)_\w+", "\n".join(lines))))
    if left:
        raise StepError(f"{source}: not defined: {' '.join(left)}")
    return "\n".join(lines) + "\n"


def step_link(read, needs):
    """All that the rule lists, in order of name, each with its length and CRC-32."""
    defined, wanted, parts = {}, set(), []
    for name in needs:
        text = read(name)
        for symbol in re.findall(r"^(?:void|int) (\w+)\(", text, re.M):
            if symbol in defined:
                raise StepError(f"{symbol} is defined in {defined[symbol]} and {name}")
            defined[symbol] = name
        wanted |= set(re.findall(r"^extern (?:void|int) (\w+)\(", text, re.M))
        parts.append(f"== {name} {len(text)} {zlib.crc32(text.encode()):08x}\n{text}")
    missing = sorted(wanted - set(defined))
    if missing:
        raise StepError(f"undefined: {' '.join(missing)}")
    return "".join(parts)


def step_map(read, needs, image, header):
    """One line per register that the image uses: its address, its name, how often."""
    text, lines = read(image), []
    for name, value in macros(read(header)).items():
        uses = len(re.findall(rf"\b{value}\b", text))
        if value.startswith("0x") and uses:
            lines.append(f"{value} {name} {uses}")
    return "\n".join(lines) + "\n"
