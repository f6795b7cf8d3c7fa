//! A measured value, beside its target.

use serde::Serialize;

use crate::distribution::Distribution;

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    /// Milliseconds.
    #[serde(rename = "ms")]
    Ms,
    /// So many in a second.
    #[serde(rename = "/s")]
    PerSecond,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Of 1,024 × 1,024 bytes.
    #[serde(rename = "MiB")]
    MiB,
    /// Of 1,024 bytes.
    #[serde(rename = "KiB")]
    KiB,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Of one core, in a hundred.
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    /// A value for people.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Unit::Ms => format!("{value:.2} ms"),
            Unit::PerSecond => format!("{value:.0} /s"),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::MiB => format!("{value:.1} MiB"),
            Unit::KiB => format!("{value:.1} KiB"),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::Percent => format!("{value:.2} %"),
        }
    }
}

/// The value that a figure should have.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    /// No more than this.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
}

impl Target {
    /// Whether a value is as it should be.
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtMost(most) => value <= most,
            Target::AtLeast(least) => value >= least,
        }
    }

    pub(super) fn show(self, unit: Unit) -> String {
        match self {
            Target::AtMost(most) => format!("≤ {}", unit.show(most)),
            Target::AtLeast(least) => format!("≥ {}", unit.show(least)),
        }
    }
}

/// One figure of a run.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    /// Its name in JSON, and wherever runs are compared.
    pub(super) name: &'static str,
    /// The same for people.
    pub(super) what: &'static str,
    pub(super) unit: Unit,
    pub(super) value: f64,
    pub(super) target: Target,
    /// No server can be better than this, measured in the same run.
    pub(super) floor: Option<(&'static str, f64)>,
    /// The same of another daemon, measured right before.
    pub(super) beside: Option<f64>,
    /// The distribution that the figure is from.
    pub(super) distribution: Option<Distribution>,
}

impl Figure {
    pub(super) fn new(
        name: &'static str,
        what: &'static str,
        unit: Unit,
        value: f64,
        target: Target,
    ) -> Figure {
        Figure { name, what, unit, value, target, floor: None, beside: None, distribution: None }
    }

    /// Beside a floor.
    pub(super) fn above(self, what: &'static str, floor: f64) -> Figure {
        Figure { floor: Some((what, floor)), ..self }
    }

    /// Of this distribution.
    pub(super) fn of(self, distribution: &Distribution) -> Figure {
        Figure { distribution: Some(distribution.clone()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_met_on_its_side() {
        assert!(Target::AtMost(5.0).is_met(5.0));
        assert!(!Target::AtMost(5.0).is_met(5.1));
        assert!(!Target::AtLeast(5.0).is_met(4.9));
        assert_eq!(Target::AtLeast(25_000.0).show(Unit::PerSecond), "≥ 25000 /s");
    }
}
