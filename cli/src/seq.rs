//! Numbers as people write them.
//!
//! In calm weather a room counts 1, 2, 3 … and people see just that. Above 2^35 a number names an era
//! and the place in it, and is long; people see `C.LANE.N`: which era, in whose lane (base 36), and the
//! number within it. Both forms are taken wherever a number is; scripts and `--json` get the integer.
//! Eras are explained in docs/numbering.md.

use std::fmt;
use std::str::FromStr;

const N_BITS: u32 = 16;
const LANE_BITS: u32 = 19;
const HOME_END: u64 = 1 << (N_BITS + LANE_BITS);
/// Every number is below.
const END: u64 = 1 << 53;

/// A number that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seq(pub u64);

/// A number as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short(pub u64);

impl FromStr for Seq {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = "give a number such as 42, or its short form such as 1.7zk.3";
        let text = text.strip_prefix('#').unwrap_or(text);
        let mut parts = text.split('.');
        let (Some(c), lane, n, None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(bad);
        };
        let number = match (lane, n) {
            (None, _) => digits(c, 10),
            (Some(lane), Some(n)) => {
                let c = digits(c, 10).filter(|c| (1..1 << 18).contains(c));
                let lane = digits(lane, 36).filter(|lane| *lane < 1 << LANE_BITS);
                let n = digits(n, 10).filter(|n| *n < 1 << N_BITS);
                c.zip(lane).zip(n).map(|((c, lane), n)| (c << LANE_BITS | lane) << N_BITS | n)
            }
            (Some(_), None) => None,
        };
        number.filter(|number| *number < END).map(Seq).ok_or(bad)
    }
}

fn digits(text: &str, radix: u32) -> Option<u64> {
    // The standard library takes a sign.
    if text.starts_with('+') { None } else { u64::from_str_radix(text, radix).ok() }
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < HOME_END || self.0 >= END {
            return write!(f, "{}", self.0);
        }
        let c = self.0 >> (N_BITS + LANE_BITS);
        let lane = self.0 >> N_BITS & ((1 << LANE_BITS) - 1);
        write!(f, "{c}.{}.{}", Base36(lane), self.0 & ((1 << N_BITS) - 1))
    }
}

struct Base36(u64);

impl fmt::Display for Base36 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 36 {
            Base36(self.0 / 36).fmt(f)?;
        }
        let digit = u32::try_from(self.0 % 36).ok().and_then(|digit| char::from_digit(digit, 36));
        write!(f, "{}", digit.unwrap_or('?'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_come_back_as_the_number_they_were_made_of() {
        let era = |c: u64, lane: u64, n: u64| (c << LANE_BITS | lane) << N_BITS | n;
        for (number, short) in [
            (0, "0"),
            (42, "42"),
            (HOME_END - 1, "34359738367"),
            (era(1, 0, 1), "1.0.1"),
            (era(3, 10_280, 65_535), "3.7xk.65535"),
            (END - 1, "262143.b8jj.65535"),
        ] {
            assert_eq!(Short(number).to_string(), short);
            assert_eq!(short.parse(), Ok(Seq(number)));
            assert_eq!(format!("#{number}").parse(), Ok(Seq(number)), "the integer does as well");
        }
        for bad in [
            "",
            "-1",
            "+1",
            "1.",
            "1.2",
            "1.2.3.4",
            "0.1.1",
            "1.!.1",
            "1.zzzzz.1",
            "1.0.65536",
            "9007199254740992",
        ] {
            assert!(bad.parse::<Seq>().is_err(), "{bad}");
        }
    }
}
