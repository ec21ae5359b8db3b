"""Hermetic build driver: a step can open only the files that its rule lists.

usage: python3 tools/build.py            build everything that is out of date
       python3 tools/build.py --plan     print the build order, build nothing

Run it in the project's root. docs/build.md tells the format of the Buildfile.
"""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import steps

STAMPS = "build/.stamps.json"


class BuildError(Exception):
    pass


def parse(text):
    """Rules as {target: (dependencies, words of the step)}."""
    rules = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split(" : ")
        if len(parts) != 3 or not parts[0].strip() or not parts[2].split():
            raise BuildError(f"Buildfile:{number}: expected 'target : dependencies : step'")
        target = parts[0].strip()
        if target in rules:
            raise BuildError(f"Buildfile:{number}: second rule for {target}")
        rules[target] = (parts[1].split(), parts[2].split())
    return rules


def order(rules, exists):
    """Targets, each after what it needs; of those that are ready, the first by name."""
    for target in sorted(rules):
        for name in rules[target][0]:
            if name not in rules and not exists(name):
                raise BuildError(f"no rule to make {name}, needed by {target}")
    done, todo = [], set(rules)
    while todo:
        ready = sorted(t for t in todo if not any(d in todo for d in rules[t][0]))
        if not ready:
            raise BuildError("cycle among: " + " ".join(sorted(todo)))
        done.append(ready[0])
        todo.discard(ready[0])
    return done


def run_rule(target, rule, read_file):
    """The target's content. `read_file` gives the text of one project file."""
    needs, words = rule

    def read(name):
        if name not in needs:
            raise BuildError(f"{target}: step '{words[0]}' opens {name}, which its rule does not list")
        return read_file(name)

    step = getattr(steps, "step_" + words[0], None)
    if step is None:
        raise BuildError(f"{target}: unknown step '{words[0]}'")
    try:
        return step(read, sorted(needs), *words[1:])
    except (steps.StepError, TypeError, ValueError) as error:
        raise BuildError(f"{target}: {error}") from None


def read_text(name):
    with open(name, encoding="utf-8") as handle:
        return handle.read()


def stamp(rule):
    needs, words = rule
    total = hashlib.sha256(" ".join(words).encode())
    for name in sorted(needs):
        total.update(f"\0{name}\0{read_text(name)}".encode())
    return total.hexdigest()[:16]


def main():
    rules = parse(read_text("Buildfile"))
    plan = order(rules, os.path.exists)
    if "--plan" in sys.argv[1:]:
        print("\n".join(plan))
        return
    stamps = json.loads(read_text(STAMPS)) if os.path.exists(STAMPS) else {}
    for target in plan:
        mark = stamp(rules[target])
        if os.path.exists(target) and stamps.get(target) == mark:
            print("up to date", target)
            continue
        content = run_rule(target, rules[target], read_text)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8") as handle:
            handle.write(content)
        stamps[target] = mark
        with open(STAMPS, "w", encoding="utf-8") as handle:
            json.dump(stamps, handle, indent=1, sort_keys=True)
        print("built     ", target)


if __name__ == "__main__":
    try:
        main()
    except (BuildError, OSError) as problem:
        sys.exit(f"build: {problem}")
