#!/bin/sh
# in check
# No struct is compared or hashed as bytes, since its padding may have any value, but those that are
# listed here: they have none, or a difference costs nothing.
set -eu

# Lines of $1/src: `&a` in a call of memcmp, or `sizeof *a` in one of memcmp or base_hash.
sizeof='[^;]*[ (]sizeof \*'
compared() {
    (cd "$1/src" && grep -rnE "memcmp\((&|$sizeof)|base_hash[a-z_]*\($sizeof" --include='*.[ch]' .) |
        grep -v ' \* sizeof ' | sed 's/:[0-9]*: */ /' | sort
}

mkdir -p wrong/src
printf '%s\n' 'return memcmp(&a->x, &b->x, sizeof a->x) == 0;' 'same = memcmp(a, b, sizeof *a) == 0;' \
    'same = memcmp(a, b, n) == 0;' >wrong/src/a.c
[ "$(compared wrong | wc -l)" = 2 ] || { echo "not found: two comparisons of structs" >&2; exit 1; }

# model_rope and product_key say that they have no padding; pages and classes of characters are
# arrays of numbers; numbers are no structs; a plan that is not found again is made again.
cat >known <<'END'
./device/cuda/product/cuda_products.c return &products->buckets[base_hash(key, sizeof *key) % BUCKETS];
./device/cuda/product/cuda_products.c while (p && memcmp(&p->key, key, sizeof *key) != 0) p = p->next;
./model/builder.c if (table->rule) return !memcmp(table->rule, angles->rule, sizeof *table->rule);
./optim/optim_groups.c memcmp(&a.weight_decay, &b.weight_decay, sizeof a.weight_decay) == 0;
./optim/optim_groups.c return memcmp(&a.lr_scale, &b.lr_scale, sizeof a.lr_scale) == 0 &&
./plan/search/memo.c return memcmp(&entry->outcome.settings, settings, sizeof *settings) == 0;
./text/tokenizer/tokenizer_regex_class.c if (memcmp(&regex->classes[same], class, sizeof *class) == 0) {
./text/tokenizer/tokenizer_regex_class.c while (same < regex->bit_count && memcmp(regex->bits[same], page, sizeof *regex->bits) != 0)
END
sort known >wanted
compared "$SOURCE" >found
diff wanted found || { echo "compare the fields of structs, not their bytes" >&2; exit 1; }
