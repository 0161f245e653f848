#!/usr/bin/env python3
"""Draws docs/rooms.svg: rooms_picture.py >docs/rooms.svg (`make docs` does it). The order is that of
test_layers.sh, the dots are the includes of src/."""
import os
import re

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
COLORS = {'ground': '#5b7a99', 'means': '#4c8c7a', 'model': '#8c7a4c', 'step': '#99664c',
          'program': '#7a5b8c'}
HOLDS = {
    'base': ('ground', 'results and messages, checked arithmetic, JSON, files, random numbers'),
    'device': ('means', 'memory and kernels behind one call form; cpu/, cuda/: their kernels'),
    'comm': ('means', 'groups, collectives and their ledger; host/: shared memory; mpi/: MPI'),
    'text': ('means', 'tokenizers and chat templates'),
    'formats': ('means', 'model folders: safetensors, PyTorch and GGUF files, configs'),
    'config': ('means', 'keys/: the key table; parse, resolve, report, import; schedules'),
    'model': ('model', 'model builder, registry; architectures/, ops/: one file each'),
    'data': ('model', 'rows and token stores: what is trained on, in which order'),
    'optim': ('model', 'one file for each optimizer'),
    'plan': ('model', 'the schedule: lower, passes, verifier, prices, search'),
    'engine': ('step', 'the public step; executor/, state/, store/; checks, folders'),
    'checkpoint': ('step', 'save, verify and load, by all ranks'),
    'convert': ('program', 'export, merge, import of checkpoints'),
    'infer': ('program', 'models that are read: one evaluator, one loop over tokens'),
    'train': ('program', 'the training loop; objective/, prepare/, evaluate/, report/, profile/'),
    'api': ('program', 'the C interface over these rooms: opaque handles'),
    'cli': ('program', 'one file a subcommand; launch/, plan/'),
}
TOP, STEP, WIDE = 58, 44, 34


def room_order():
    with open(os.path.join(TREE, 'tests/scripts/test_layers.sh')) as f:
        return re.search(r'^rooms="([^"]+)"', f.read(), re.M).group(1).split()


def included(room):
    found = set()
    for folder, _, names in os.walk(os.path.join(TREE, 'src', room)):
        for name in names:
            if name.endswith(('.c', '.h')):
                with open(os.path.join(folder, name)) as f:
                    found |= set(re.findall(r'^#include "([a-z]+)/', f.read(), re.M))
    return found


def row(at, room, order):
    y, color = TOP + STEP * at, COLORS[HOLDS[room][0]]
    yield f'<rect x="16" y="{y}" width="520" height="34" rx="4" fill="{color}"/>'
    yield f'<text x="26" y="{y + 22}" fill="#ffffff" font-weight="bold">{room}/</text>'
    yield f'<text x="114" y="{y + 22}" fill="#ffffff" font-size="11">{HOLDS[room][1]}</text>'
    uses = included(room)
    for i, other in enumerate(order[:at]):
        dot = (7, COLORS[HOLDS[other][0]]) if other in uses else (2, '#cccccc')
        yield f'<circle cx="{577 + WIDE * i}" cy="{y + 17}" r="{dot[0]}" fill="{dot[1]}"/>'
    yield (f'<text x="{566 + WIDE * at}" y="{y + 21}" fill="{color}" '
           f'font-weight="bold">{room}</text>')


def main():
    order = room_order()
    width, height = 566 + WIDE * len(order) + 20, TOP + STEP * len(order) + 40
    title = 'The rooms of src/ and which of them include which'
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
          f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">')
    print(f'<title>{title}</title>')
    print(f'<rect width="{width}" height="{height}" fill="#ffffff"/>')
    print('<text x="16" y="30" font-size="15" font-weight="bold" fill="#222222">'
          'The rooms of src/</text>')
    print('<text x="560" y="30" fill="#444444">includes headers of</text>')
    for at, room in enumerate(order):
        print('\n'.join(row(at, room, order)))
    print(f'<text x="16" y="{height - 16}" fill="#444444">Large dot: the room of the row includes '
          'headers of the room of the column. Every room knows only rooms above it.</text>')
    print('</svg>')


main()
