//! Properties are tried on the same cases in each run, or on those that somebody asked for.

#[test]
fn the_cases_of_a_run_can_be_had_again() {
    let seed = std::env::var("PROPTEST_RNG_SEED").expect(".cargo/config.toml sets it, where nobody else does");
    seed.parse::<u64>().expect("proptest passes over what is no number");
}
