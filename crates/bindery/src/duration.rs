//! Durations in flags, as Go programs write them: `15s`, `1m30s`.

use std::time::Duration;

/// Parses a duration.
pub fn parse(text: &str) -> Result<Duration, String> {
    // Go accepts 0 without a unit.
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| format!("{text:?} is not a duration such as 15s or 1m30s"))?;
    Duration::try_from(duration).map_err(|_| format!("{text:?} is negative"))
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
    }
}
