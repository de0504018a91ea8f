//! Numbers in flags. An error says why a value is rejected, and what to use instead; clap adds the
//! flag and the value.

use bindery_model::Quantity;

/// What client-go uses if the rate is 0.
const CLIENT_RATE_DEFAULT: f64 = 5.0;

/// What client-go uses if the burst is 0.
const CLIENT_BURST_DEFAULT: f64 = 10.0;

/// A rate of requests per second; 0 for no limit.
pub fn rate(text: &str) -> Result<f64, String> {
    not_negative(text, "0 means no limit")
}

/// A rate of requests per second; 0 for the default of client-go.
pub fn rate_or_default(text: &str) -> Result<f64, String> {
    let rate = not_negative(text, "a high number means no limit")?;
    Ok(if rate == 0.0 { CLIENT_RATE_DEFAULT } else { rate })
}

/// A burst of requests; 0 for the default of client-go.
pub fn burst(text: &str) -> Result<f64, String> {
    let burst: u32 = whole(text, 0)?;
    Ok(if burst == 0 { CLIENT_BURST_DEFAULT } else { f64::from(burst) })
}

/// A number of things of which there has to be at least one.
pub fn count(text: &str) -> Result<usize, String> {
    whole(text, 1)
}

/// A number of seconds, as upstream's 32-bit flags.
pub fn seconds(text: &str) -> Result<u64, String> {
    let seconds: u32 = whole(text, 0)?;
    match i32::try_from(seconds) {
        Ok(_) => Ok(seconds.into()),
        Err(_) => Err(format!("must be at most {}", i32::MAX)),
    }
}

/// An amount of storage.
pub fn storage(text: &str) -> Result<Quantity, String> {
    let quantity = Quantity::parse(text).map_err(|problem| format!("not a quantity such as 100Gi: {problem}"))?;
    match quantity < *Quantity::zero() {
        true => Err("must not be negative: use 0 or more, such as 100Gi".into()),
        false => Ok(quantity),
    }
}

fn not_negative(text: &str, remedy: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Ok(number) if number < 0.0 => Err(format!("must not be negative: use 0 or more; {remedy}")),
        Ok(_) | Err(_) => Err(format!("not a number such as 20 or 0.5: use 0 or more; {remedy}")),
    }
}

fn whole<T: TryFrom<i128>>(text: &str, min: i128) -> Result<T, String> {
    let number = text.parse::<i128>().map_err(|_| format!("not a whole number: use {min} or more"))?;
    if number < min {
        return Err(format!("too small: use {min} or more"));
    }
    T::try_from(number).map_err(|_| "too large: use a smaller number".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_means_what_it_means_for_client_go() {
        assert_eq!((rate_or_default("0"), rate_or_default("0.5")), (Ok(5.0), Ok(0.5)));
        assert_eq!((burst("0"), burst("3")), (Ok(10.0), Ok(3.0)));
        assert_eq!(rate("0"), Ok(0.0), "no limit");
    }

    #[test]
    fn numbers_without_a_meaning_are_rejected() {
        for text in ["-1", "-0.5", "nan", "inf", "", "many"] {
            assert!(rate(text).is_err() && rate_or_default(text).is_err() && burst(text).is_err(), "{text}");
            assert!(count(text).is_err() && seconds(text).is_err() && storage(text).is_err(), "{text}");
        }
        assert!(count("0").is_err() && count("1").is_ok());
        assert!(seconds("2147483647").is_ok() && seconds("2147483648").is_err());
        assert!(count("170141183460469231731687303715884105727").is_err() && burst("4294967296").is_err());
    }
}
