//! Random tests try the same cases in every run, unless a seed is given.

#[test]
fn the_seed_of_random_tests_is_set() {
    let seed = std::env::var("PROPTEST_RNG_SEED").expect(".cargo/config.toml sets a default");
    assert!(seed.parse::<u64>().is_ok(), "{seed:?} is no seed");
}
