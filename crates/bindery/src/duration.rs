//! Durations in flags, as Go programs write them: `15s`, `1m30s`.

use std::time::Duration;

/// The longest duration in Go. Adding it to the current time does not overflow.
const MAX: Duration = Duration::from_nanos(i64::MAX as u64);

/// Parses a duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    // Go accepts 0 without a unit.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| "not a duration: use a number and a unit, such as 15s or 1m30s")?;
    match Duration::try_from(duration) {
        Err(_) => Err("must not be negative: use a duration such as 15s".into()),
        Ok(duration) if duration > MAX => Err("too long: use at most 2562047h, about 292 years".into()),
        Ok(duration) => Ok(duration),
    }
}

/// Parses an interval or a timeout, which cannot be 0.
pub fn positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("must not be 0: use a duration such as 15s".into()),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_as_by_go() {
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("0"), Ok(Duration::ZERO));
        assert!(parse("15").is_err() && parse("-1s").is_err() && parse("soon").is_err());
        assert!(parse("2562047h").is_ok() && parse("2562048h").is_err(), "as long as in Go");
        assert!(positive("0").is_err() && positive("0s").is_err() && positive("1ns").is_ok());
    }
}
