#!/usr/bin/env python3
"""Measures of the rooms below src/: rooms.py [TREE].

A thing of a room is a file or a folder that lies directly in it; a header and its source are one,
and so is X_private.h or X_internal.h beside X.c. An arrow goes from one thing of a room to another
that it includes, or of which it names a function that is defined there alone. A circle is a set of
files that call each other in a loop, by the same names. Then what the next reader would ask:
includes of a backend's headers outside device/, asserts a thousand lines, files that name an
objective. Reads text, not a build; comments and strings are left out."""
import os
import re
import sys

SOURCES = ('.c', '.cu')


def read(tree):
    texts = {}
    for folder, _, names in os.walk(os.path.join(tree, 'src')):
        for name in names:
            if name.endswith(SOURCES + ('.h', '.cuh')):
                path = os.path.join(folder, name)
                with open(path, errors='replace') as f:
                    texts[os.path.relpath(path, os.path.join(tree, 'src'))] = f.read()
    return texts


def bare(text):
    text = re.sub(r'//[^\n]*|/\*.*?\*/', ' ', text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def stem(path, texts):
    name = re.sub(r'\.[a-z]+$', '', path)
    short = re.sub(r'_(internal|private)$', '', name)
    return short if any(short + end in texts for end in SOURCES) else name


def defined(code):
    """Function -> the one source that defines it."""
    places = {}
    for path, text in code.items():
        if path.endswith(SOURCES):
            for found in re.finditer(
                    r'^(?!static|typedef|#|\s|\})[A-Za-z_][\w \*]*?\b(\w+)\([^;{}]*\)\s*\{',
                    text, re.M):
                places.setdefault(found.group(1), set()).add(path)
    return {name: paths.pop() for name, paths in places.items()
            if len(paths) == 1 and name != 'main'}


def edges(texts):
    code = {path: bare(text) for path, text in texts.items()}
    home = defined(code)
    includes, calls = set(), set()
    for path, text in texts.items():
        here = stem(path, texts)
        for to in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text, re.M):
            if to in texts:
                includes.add((here, stem(to, texts)))
        if path.endswith(SOURCES):
            words = set(re.findall(r'(?<![.>])\b[a-z_]\w+\b', code[path]))
            # A private function may bear the name of another file's.
            own = set(re.findall(r'^static [^;={(]*?\b(\w+)\(', code[path], re.M))
            for word in words - own:
                if word in home:
                    calls.add((here, stem(home[word], texts)))
    return ({e for e in includes if e[0] != e[1]}, {e for e in calls if e[0] != e[1]})


def thing(room, name):
    if not name.startswith(room + '/'):
        return None
    rest = name[len(room) + 1:]
    return rest.split('/')[0] + ('/' if '/' in rest else '')


def circles(arrows):
    """Strongly connected sets of more than one file (Tarjan)."""
    after, index, low, stack, found = {}, {}, {}, [], []
    for a, b in arrows:
        after.setdefault(a, set()).add(b)

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(after.get(v, ())):
            if w not in index:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == index[v]:
            at = stack.index(v)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for v in sorted(after):
        if v not in index:
            visit(v)
    return found


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '..')
    sys.setrecursionlimit(100000)
    texts = read(tree)
    includes, calls = edges(texts)
    rooms = sorted({path.split('/')[0] for path in texts})
    print('room          things  arrows')
    for room in rooms:
        things = {thing(room, stem(path, texts)) for path in texts} - {None}
        arrows = {(thing(room, a), thing(room, b)) for a, b in includes | calls}
        arrows = {(a, b) for a, b in arrows if a and b and a != b}
        print(f'{room:12} {len(things):7} {len(arrows):7}')
    loops = circles(calls)
    print(f'circles of calls: {len(loops)}')
    for loop in loops:
        print(f'  {len(loop):3} {" ".join(loop)}')
    outside = sum(len(re.findall(r'include "device/cuda/', text)) for path, text in texts.items()
                  if not path.startswith('device/'))
    lines = sum(text.count('\n') for text in texts.values())
    asserts = sum(len(re.findall(r'^\s*(?:assert|base_assert|BASE_ASSERT)\(', text, re.M))
                  for text in texts.values())
    objective = sum(bool(re.search(r'preference|distil([^b]|$)', text, re.M))
                    for text in texts.values())
    print(f'includes of backends outside device/: {outside}')
    print(f'asserts: {asserts} in {lines} lines, {1000 * asserts / lines:.1f} a thousand')
    print(f'files that name an objective: {objective}')


if __name__ == '__main__':
    main()
