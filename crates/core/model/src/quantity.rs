//! Exact resource quantities: `10Gi`, `1.5G`, `800E`, `100m`, `1e3`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::Name;

/// The number of nano-units in one.
const NANOS: i128 = 1_000_000_000;

/// Upstream caps quantities with a binary suffix at the largest signed 64-bit number.
const BINARY_MAX: i128 = i64::MAX as i128 * NANOS;

/// The number of digits to keep: enough to distinguish all values that fit, too few to overflow
/// before scaling.
const DECIMAL_DIGITS: usize = 38;
const BINARY_DIGITS: usize = 20;

/// An exact amount in nano-units, with its original text. Only the amounts are compared.
#[derive(Clone)]
pub struct Quantity {
    nanos: i128,
    text: Name,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuantityError {
    /// It is empty.
    Empty,
    /// It has no digits, or an unexpected character.
    NotANumber,
    /// Kubernetes does not define its unit.
    UnknownSuffix,
    /// It exceeds about 1.7e29 and cannot be compared exactly.
    TooLarge,
}

impl Quantity {
    /// Zero, which a missing request or capacity counts as.
    pub fn zero() -> &'static Quantity {
        static ZERO: Quantity = Quantity { nanos: 0, text: Name::new_static("0") };
        &ZERO
    }

    /// A number of bytes, in the largest binary unit that divides it: `5632Mi`.
    pub fn of_bytes(bytes: u64) -> Quantity {
        const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let unit = if bytes == 0 { 0 } else { (bytes.trailing_zeros() / 10) as usize };
        let text = format!("{}{}", bytes >> (10 * unit), UNITS[unit]);
        Quantity { nanos: i128::from(bytes) * NANOS, text: text.into() }
    }

    /// Parses a quantity that a person wrote. The error says what was probably meant: `10G` or
    /// `10Gi` instead of `10GB`.
    pub fn parse(text: &str) -> Result<Quantity, String> {
        text.parse().map_err(|error: QuantityError| match meant(text) {
            None => error.to_string(),
            Some(meant) => format!("{error}; use {meant}"),
        })
    }

    /// The amount in nano-units.
    pub fn nanos(&self) -> i128 {
        self.nanos
    }

    /// The amount as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The amount in whole units, rounded up, as upstream counts bytes.
    pub fn units(&self) -> i128 {
        -(-self.nanos).div_euclid(NANOS)
    }

    /// The amount in thousandths, rounded up, as upstream counts CPUs.
    pub fn millis(&self) -> i128 {
        -(-self.nanos).div_euclid(NANOS / 1_000)
    }

    /// The amount in units of `unit_bytes`, rounded down.
    pub fn whole_units(&self, unit_bytes: i128) -> i128 {
        (self.nanos / NANOS).div_euclid(unit_bytes.max(1))
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Ok(Quantity { nanos: parse(text)?, text: text.into() })
    }
}

/// The unit of a quantity.
enum Unit {
    /// A power of ten.
    Ten(i64),
    /// A power of two.
    Two(u32),
}

fn unit(suffix: &str) -> Result<Unit, QuantityError> {
    Ok(match suffix {
        "n" => Unit::Ten(-9),
        "u" => Unit::Ten(-6),
        "m" => Unit::Ten(-3),
        "" => Unit::Ten(0),
        "k" => Unit::Ten(3),
        "M" => Unit::Ten(6),
        "G" => Unit::Ten(9),
        "T" => Unit::Ten(12),
        "P" => Unit::Ten(15),
        "E" => Unit::Ten(18),
        "Ki" => Unit::Two(10),
        "Mi" => Unit::Two(20),
        "Gi" => Unit::Two(30),
        "Ti" => Unit::Two(40),
        "Pi" => Unit::Two(50),
        "Ei" => Unit::Two(60),
        exponent => {
            let digits = exponent.strip_prefix(['e', 'E']).ok_or(QuantityError::UnknownSuffix)?;
            Unit::Ten(digits.parse().map_err(|_| QuantityError::UnknownSuffix)?)
        }
    })
}

/// The quantities that a text with an unknown unit may mean: `10GB`, `10gb`, `10 GiB`.
fn meant(text: &str) -> Option<String> {
    const UNITS: [(&str, &str, &str); 6] =
        [("k", "k", "Ki"), ("m", "M", "Mi"), ("g", "G", "Gi"), ("t", "T", "Ti"), ("p", "P", "Pi"), ("e", "E", "Ei")];
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic() || c.is_whitespace())?);
    let unit = unit.trim_start().to_ascii_lowercase();
    let prefix = unit.strip_suffix("bytes").or_else(|| unit.strip_suffix('b')).unwrap_or(&unit);
    let (prefix, is_binary) = match prefix.strip_suffix('i') {
        Some(prefix) => (prefix, true),
        None => (prefix, false),
    };
    let words = match UNITS.iter().find(|(letter, _, _)| *letter == prefix) {
        Some((_, _, binary)) if is_binary => vec![*binary],
        Some((_, decimal, binary)) => vec![*decimal, *binary],
        None if prefix.is_empty() && !is_binary => vec![""],
        None => return None,
    };
    let quantities: Vec<String> = words.into_iter().map(|unit| format!("{number}{unit}")).collect();
    quantities.iter().all(|quantity| parse(quantity).is_ok()).then(|| quantities.join(" or "))
}

fn parse(text: &str) -> Result<i128, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Empty);
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let is_digit = |c: char| c.is_ascii_digit();
    let (whole, rest) = unsigned.split_at(unsigned.find(|c| !is_digit(c)).unwrap_or(unsigned.len()));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c| !is_digit(c)).unwrap_or(rest.len())),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(QuantityError::NotANumber);
    }
    let unit = unit(suffix)?;
    let digits_max = match unit {
        Unit::Ten(_) => DECIMAL_DIGITS,
        Unit::Two(_) => BINARY_DIGITS,
    };
    let magnitude = match (Digits::read(whole, fraction, digits_max), unit) {
        (Some(digits), Unit::Ten(exponent)) => digits.scaled(1, exponent.saturating_add(9))?,
        (Some(digits), Unit::Two(shift)) => {
            digits.scaled(1 << shift, 9).map_or(BINARY_MAX, |amount| amount.min(BINARY_MAX))
        }
        // Too many digits before the point: with a binary unit it is capped, otherwise
        // incomparable.
        (None, Unit::Two(_)) => BINARY_MAX,
        (None, Unit::Ten(_)) => return Err(QuantityError::TooLarge),
    };
    Ok(if negative { -magnitude } else { magnitude })
}

/// The significant digits of a number: `mantissa` × 10^`exponent`, and whether digits were dropped.
struct Digits {
    mantissa: i128,
    exponent: i64,
    cut: bool,
}

impl Digits {
    /// `None` when there are too many digits before the point.
    fn read(whole: &str, fraction: &str, digits_max: usize) -> Option<Digits> {
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        if whole.len() > digits_max {
            return None;
        }
        let leading_zeros = if whole.is_empty() { fraction.len() - fraction.trim_start_matches('0').len() } else { 0 };
        let kept = fraction.len().min(leading_zeros + digits_max - whole.len());
        let digits = whole.bytes().chain(fraction.bytes().take(kept));
        let mantissa = {
            let mut digits = digits;
            digits.try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0')))
        };
        Some(Digits { mantissa: mantissa?, exponent: -(kept as i64), cut: kept < fraction.len() })
    }

    /// The number times `factor` times 10^`exponent`, rounded up so that no request becomes zero.
    fn scaled(&self, factor: i128, exponent: i64) -> Result<i128, QuantityError> {
        let product = self.mantissa.checked_mul(factor).ok_or(QuantityError::TooLarge)?;
        let exponent = exponent.saturating_add(self.exponent);
        let power = |e: u64| u32::try_from(e).ok().and_then(|e| 10_i128.checked_pow(e));
        if product == 0 {
            return Ok(i128::from(self.cut));
        }
        if exponent >= 0 {
            let power = power(exponent.unsigned_abs()).ok_or(QuantityError::TooLarge)?;
            return product.checked_mul(power).ok_or(QuantityError::TooLarge);
        }
        let Some(power) = power(exponent.unsigned_abs()) else {
            return Ok(1);
        };
        let round_up = product % power != 0 || self.cut;
        Ok(product / power + i128::from(round_up))
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuantityError::Empty => "it is empty",
            QuantityError::NotANumber => "it is not a number",
            QuantityError::UnknownSuffix => "its unit is unknown",
            QuantityError::TooLarge => "it is too large to compare",
        })
    }
}

impl std::error::Error for QuantityError {}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanos(text: &str) -> Result<i128, QuantityError> {
        text.parse::<Quantity>().map(|q| q.nanos())
    }

    #[test]
    fn error_suggests_what_was_probably_meant() {
        let suggested = |text: &str| Quantity::parse(text).expect_err("not a quantity");
        for (text, suggestion) in [
            ("10GB", "10G or 10Gi"),
            ("10gb", "10G or 10Gi"),
            ("10g", "10G or 10Gi"),
            ("1.5TiB", "1.5Ti"),
            ("10 Gi", "10Gi"),
            ("10K", "10k or 10Ki"),
            ("100MB", "100M or 100Mi"),
            ("512 bytes", "512"),
            ("7B", "7"),
            ("-3gib", "-3Gi"),
        ] {
            assert_eq!(suggested(text), format!("its unit is unknown; use {suggestion}"), "{text}");
        }
        assert_eq!(suggested("10 parsecs"), "its unit is unknown");
        assert_eq!(suggested("GB"), "it is not a number");
        assert_eq!(suggested("é"), "it is not a number");
        assert_eq!(suggested(""), "it is empty");
        assert_eq!(Quantity::parse("10Gi").map(|quantity| quantity.units()), Ok(10 << 30));
    }

    #[test]
    fn every_suffix_is_parsed() {
        let units = [
            ("1n", 1),
            ("1u", 1_000),
            ("1m", 1_000_000),
            ("1", NANOS),
            ("1k", 1_000 * NANOS),
            ("1M", 1_000_000 * NANOS),
            ("1G", NANOS * NANOS),
            ("1T", 1_000 * NANOS * NANOS),
            ("1P", 1_000_000 * NANOS * NANOS),
            ("1E", NANOS * NANOS * NANOS),
            ("1Ki", NANOS << 10),
            ("1Mi", NANOS << 20),
            ("1Gi", NANOS << 30),
            ("1Ti", NANOS << 40),
            ("1Pi", NANOS << 50),
            ("1Ei", NANOS << 60),
            ("1e3", 1_000 * NANOS),
            ("1E3", 1_000 * NANOS),
            ("1e-3", 1_000_000),
            ("1e+3", 1_000 * NANOS),
        ];
        for (text, expected) in units {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn bytes_are_written_in_the_largest_exact_unit() {
        let cases = [
            (0, "0"),
            (1, "1"),
            (5_970_004_541, "5970004541"),
            (102_400, "100Ki"),
            (11 << 29, "5632Mi"),
            (5 << 30, "5Gi"),
            (1 << 60, "1Ei"),
            (u64::MAX, "18446744073709551615"),
        ];
        for (bytes, text) in cases {
            let quantity = Quantity::of_bytes(bytes);
            assert_eq!((quantity.as_str(), quantity.units()), (text, i128::from(bytes)));
        }
    }

    #[test]
    fn fractions_are_exact_and_round_up_below_a_nano() {
        assert_eq!(nanos("1.5Gi"), Ok((NANOS << 30) * 3 / 2));
        assert_eq!(nanos(".5"), Ok(NANOS / 2));
        assert_eq!(nanos("1."), Ok(NANOS));
        assert_eq!(nanos("-1.5k"), Ok(-1_500 * NANOS));
        assert_eq!(nanos("0.1n"), Ok(1));
        assert_eq!(nanos("1.00000000000000000000000000000000000000000000001"), Ok(NANOS + 1));
        assert_eq!(nanos("0.00000000000000000000000000000000000000000000001"), Ok(1));
        assert_eq!(nanos("1e-99999999999"), Ok(1));
        assert_eq!(nanos("000001.10"), Ok(1_100_000_000));
        assert_eq!(nanos("0.000"), Ok(0));
    }

    #[test]
    fn values_beyond_63_bits_compare_exactly() {
        let parse = |text: &str| text.parse::<Quantity>().expect("a quantity");
        assert!(parse("800E") > parse("200E"));
        assert!(parse("800E") > parse("9223372036854775808"));
        assert_eq!(parse("0.8e21"), parse("800E"));
        assert_eq!(parse("16Ei"), parse("9223372036854775807"), "binary suffixes are capped, as upstream");
        assert_eq!(parse("99999999999999999999999999999Ei"), parse("8Ei"));
    }

    #[test]
    fn invalid_quantities_are_rejected_with_a_reason() {
        assert_eq!(nanos(""), Err(QuantityError::Empty));
        for text in ["abc", "-", "+", ".", "Gi", " 1", "--1", "1..2"] {
            assert!(nanos(text).is_err(), "{text:?}");
        }
        for text in ["1 Gi", "1gi", "1KI", "1Gib", "1e", "1e1.5", "1Zi", "5GiB"] {
            assert_eq!(nanos(text), Err(QuantityError::UnknownSuffix), "{text:?}");
        }
        for text in ["1e400", "999999999999999999999999999999999999999999999", "1e99999999999"] {
            assert_eq!(nanos(text), Err(QuantityError::TooLarge), "{text:?}");
        }
    }

    #[test]
    fn whole_units_round_down() {
        let gib = 1 << 30;
        let units = |text: &str| text.parse::<Quantity>().map(|q| q.whole_units(gib));
        assert_eq!(units("10Gi"), Ok(10));
        assert_eq!(units("1.9Gi"), Ok(1));
        assert_eq!(units("5M"), Ok(0));
    }

    #[test]
    fn units_and_thousandths_round_up() {
        let parse = |text: &str| text.parse::<Quantity>().expect("a quantity");
        assert_eq!((parse("1500m").units(), parse("1500m").millis()), (2, 1500));
        assert_eq!((parse("0.1m").units(), parse("0.1m").millis()), (1, 1));
        assert_eq!((parse("-1500m").units(), parse("2").millis()), (-1, 2000));
    }

    proptest::proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC*") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn numbers_order_as_numbers(a in 0_u64.., b in 0_u64.., scale in 0_usize..4) {
            let suffix = ["", "k", "M", "G"][scale];
            let parse = |n: u64| format!("{n}{suffix}").parse::<Quantity>().expect("a quantity");
            proptest::prop_assert_eq!(parse(a).cmp(&parse(b)), a.cmp(&b));
        }
    }
}
