# label: soak
# All of test_bubble: 2 and 4 stages, 4, 8 and 16 micro batches, each schedule.
# runs alone, not under sanitizers (it measures time), timeout: 2400
exec "$BUILD/tests/test_bubble" all
