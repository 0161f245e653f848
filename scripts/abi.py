#!/usr/bin/env python3
"""The binary interface of the library, and what may change in it (docs/c-interface.md).

    abi.py list                 the interface of include/sifr, as gcc lays it out
    abi.py check [LIBRARY]      compares it with tests/abi/interface.txt: 1 where a program that was
                                built with the stored one would break; LIBRARY must export all of it
    abi.py suppressions         for abidiff: the structs that have grown at their end
    abi.py write LIBRARY OUT    LIBRARY's interface, as abidw of Debian's abigail-tools writes it
    abi.py renew LIBRARY        stores both, in tests/abi/interface.txt and libsifr.abi

A break is stored only under a new soname, or before the version is released. TREE=DIR: of another
tree than the one this file lies in."""
import os
import re
import subprocess
import sys
import tempfile

TREE = os.environ.get('TREE') or os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
STORED = os.path.join(TREE, 'tests/abi/interface.txt')
STORED_ABI = os.path.join(TREE, 'tests/abi/libsifr.abi')


def text_of(*path):
    with open(os.path.join(TREE, *path)) as f:
        return f.read()


def soname():
    major, minor = re.search(r'project\(sifr VERSION (\d+)\.(\d+)', text_of('CMakeLists.txt')).groups()
    return f'libsifr.so.{major}.{minor}'


def released():
    return 'not released yet' not in re.search(r'^## (.*)$', text_of('CHANGELOG.md'), re.M).group(1)


def compiled():
    """Prototypes, and the debugger's view, of all public headers."""
    headers = sorted(n for n in os.listdir(os.path.join(TREE, 'include/sifr')) if n.endswith('.h'))
    with tempfile.TemporaryDirectory() as folder:
        source, out = os.path.join(folder, 'all.c'), os.path.join(folder, 'all.o')
        with open(source, 'w') as f:
            f.writelines(f'#include "sifr/{name}"\n' for name in headers)
        subprocess.run(
            ['gcc', '-std=c17', '-g', '-gdwarf-4', '-fno-eliminate-unused-debug-types', '-aux-info',
             out + '.aux', '-I', os.path.join(TREE, 'include'), '-c', source, '-o', out], check=True)
        dwarf = subprocess.run(['readelf', '--debug-dump=info', out], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        with open(out + '.aux') as f:
            return f.read(), dwarf


class Entry:
    """What the compiler says of a type, a field or a constant."""

    def __init__(self, depth, tag):
        self.depth, self.tag, self.facts, self.inner = depth, tag, {}, []


def entries(dwarf):
    """Offset -> entry."""
    found, open_ones = {}, []
    for line in dwarf.splitlines():
        begin = re.match(r' <(\d+)><([0-9a-f]+)>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)', line)
        if begin:
            entry = Entry(int(begin.group(1)), begin.group(3))
            found[begin.group(2)] = entry
            del open_ones[entry.depth:]
            if open_ones:
                open_ones[-1].inner.append(entry)
            open_ones.append(entry)
            continue
        fact = re.match(r' +<[0-9a-f]+> +DW_AT_(\w+) *: (?:\(.*?\): )?(.*?)\s*$', line)
        if fact and open_ones:
            open_ones[-1].facts[fact.group(1)] = fact.group(2)
    return found


class Interface:
    """Lines of what a program and the library must agree on, by their name."""

    def __init__(self):
        prototypes, dwarf = compiled()
        self.all = entries(dwarf)
        self.lines = {}
        for result in re.finditer(r'\*/ extern (.*?)(\w+) (\(.*\));', prototypes):
            before, name, parameters = result.groups()
            if name.startswith('sifr_'):
                self.lines[f'function {name}'] = [f'{before.strip()} {parameters}']
        for entry in self.all.values():
            if entry.depth == 1:
                self.add(entry)

    def target(self, entry):
        reference = entry.facts.get('type')
        return self.all[re.search('<(?:0x)?([0-9a-f]+)>', reference).group(1)] if reference else None

    def type_name(self, entry):
        if entry is None:
            return 'void'
        of = lambda: self.type_name(self.target(entry))
        if entry.tag == 'pointer_type':
            return of() + ' *'
        if entry.tag == 'const_type':
            return of() + ' const'
        if entry.tag == 'array_type':
            return of() + ''.join(f"[{int(i.facts['upper_bound'], 0) + 1}]" for i in entry.inner)
        if entry.tag == 'subroutine_type':
            inner = [self.type_name(self.target(i)) for i in entry.inner]
            return f"{of()} ({', '.join(inner) or 'void'})"
        if 'name' not in entry.facts:
            return ' '.join([entry.tag] + [self.field(i) for i in entry.inner])
        return entry.facts['name']

    def field(self, entry):
        if entry.tag == 'enumerator':
            return f"{entry.facts['name']} {entry.facts['const_value']}"
        place = entry.facts.get('data_member_location', '0')
        return f"{place} {self.type_name(self.target(entry))} {entry.facts.get('name', '')}".rstrip()

    def add(self, entry):
        name = entry.facts.get('name', '')
        if entry.tag == 'enumeration_type':
            for constant in entry.inner:
                if constant.facts['name'].startswith('SIFR_'):
                    self.lines[f"constant {constant.facts['name']}"] = [constant.facts['const_value']]
        if not name.startswith('sifr_'):
            return
        if entry.tag == 'structure_type' and 'byte_size' in entry.facts:
            self.lines[f'struct {name}'] = [entry.facts['byte_size'] + ' bytes'] + \
                [self.field(i) for i in entry.inner]
        elif entry.tag == 'enumeration_type':
            self.lines[f'enum {name}'] = [entry.facts['byte_size'] + ' bytes']
        elif entry.tag == 'typedef' and self.type_name(self.target(entry)) != name:
            self.lines[f'type {name}'] = [self.type_name(self.target(entry))]


def written(lines):
    out = [f'soname {soname()}\n']
    for name, (first, *fields) in sorted(lines.items()):
        out += [f'{name}: {first}\n'] + [f'  {field}\n' for field in fields]
    return ''.join(out)


def stored():
    """The soname, and the lines by name."""
    lines = {}
    with open(STORED) as f:
        of = f.readline().split()[1]
        for line in f:
            if line.startswith('  '):
                lines[name].append(line.strip())
            else:
                name, first = line.strip().split(': ', 1)
                lines[name] = [first]
    return of, lines


def led_by_size(lines):
    return len(lines) > 1 and lines[1] == '0 size_t size'


def grown(before, now):
    """Whether a struct has only got fields after its end. One in what was padding would be read of
    programs that never wrote it."""
    if not led_by_size(before) or now[1:len(before)] != before[1:]:
        return False
    end = int(before[0].split()[0])
    return all(int(field.split()[0]) >= end for field in now[len(before):]) and \
        int(now[0].split()[0]) >= end


def compare(before, now):
    """Breaks and additions, as lines to read."""
    breaks, additions = [], []
    for name, lines in before.items():
        if name not in now:
            breaks.append(f'{name}: is gone')
        elif now[name] != lines:
            if name.startswith('struct') and grown(lines, now[name]):
                additions.append(f'{name}: has grown at its end')
            else:
                changes = [f'  was {line}' for line in lines if line not in now[name]] + \
                    [f'  is {line}' for line in now[name] if line not in lines]
                breaks.append(f'{name}: has changed\n' + '\n'.join(changes))
    additions += [f'{name}: is new' for name in now if name not in before]
    return breaks, additions


def exported(library):
    names = subprocess.run(['nm', '-D', '--defined-only', library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return {line.split()[-1].split('@')[0] for line in names.splitlines()}


def check(library=None):
    of, before = stored()
    if of != soname():
        sys.exit(f'abi.py: the stored interface is of {of}, this tree of {soname()}: make abi')
    breaks, additions = compare(before, Interface().lines)
    if library:
        there = exported(library)
        breaks += [f'{name}: {library} does not export it' for name in before
                   if name.startswith('function') and name.split()[1] not in there]
    for line in additions:
        print(line)
    print(f'{len(before)} stored, {len(additions)} additions, {len(breaks)} breaks')
    if breaks:
        sys.exit('\n'.join(breaks) + f'\nabi.py: a program that was built with {of} breaks; '
                 'docs/c-interface.md says what may change, `make abi` stores what should')


def suppressions():
    """Of those alone: where nothing is inserted, this rule lets any change of a struct pass."""
    for line in compare(stored()[1], Interface().lines)[1]:
        grown_one = re.match(r'struct (\w+): has grown', line)
        if grown_one:
            print(f'[suppress_type]\n  type_kind = struct\n  name = {grown_one.group(1)}\n'
                  '  has_data_member_inserted_at = end\n')


def renew(library):
    now = Interface().lines
    if os.path.exists(STORED):
        of, before = stored()
        breaks, additions = compare(before, now)
        if breaks and of == soname() and released():
            sys.exit('\n'.join(breaks) + f'\nabi.py: {of} is released: raise the minor version in '
                     'CMakeLists.txt, with which the soname changes, or undo the breaks')
        print('\n'.join(breaks + additions) or 'as it was')
    write_abi(library, STORED_ABI + '.new')
    with open(STORED, 'w') as f:
        f.write(written(now))
    os.replace(STORED_ABI + '.new', STORED_ABI)


def write_abi(library, out):
    """What the headers show of it, without places of the machine."""
    found = subprocess.run(
        ['abidw', '--headers-dir', os.path.join(TREE, 'include/sifr'), '--drop-private-types',
         '--exported-interfaces-only', '--no-corpus-path', '--no-comp-dir-path', '--no-show-locs',
         '--type-id-style', 'hash', library], check=True, text=True, stdout=subprocess.PIPE).stdout
    with open(out, 'w') as f:
        f.write(re.sub("path='[^']*/src/", "path='src/", found))


def main(command='', *given):
    commands = {'list': (lambda: print(written(Interface().lines), end=''), 0, 0),
                'check': (check, 0, 1), 'suppressions': (suppressions, 0, 0),
                'write': (write_abi, 2, 2), 'renew': (renew, 1, 1)}
    call, least, most = commands.get(command, (None, 0, 0))
    if not call or not least <= len(given) <= most:
        sys.exit(__doc__)
    call(*given)


if __name__ == '__main__':
    main(*sys.argv[1:])
