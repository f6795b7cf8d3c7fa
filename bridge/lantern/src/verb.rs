//! The verbs of envelopes, and the grounds of resolutions.

use serde::Serialize;

macro_rules! words {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$what:meta])* $variant:ident = $word:literal, )* } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
            pub enum $name {
                $( $(#[$what])* #[serde(rename = $word)] $variant, )*
            }

            impl $name {
                /// All there are.
                pub const ALL: &'static [$name] = &[$($name::$variant),*];

                /// As it stands in an envelope.
                pub fn word(self) -> &'static str {
                    match self {
                        $($name::$variant => $word,)*
                    }
                }

                /// The one with this word, to the letter.
                pub fn of_word(word: &str) -> Option<Self> {
                    Self::ALL.iter().copied().find(|value| value.word() == word)
                }
            }
        )*
    };
}

words! {
    /// The `type` of an envelope.
    Verb {
        /// An introduction of oneself.
        Hello = "HELLO",
        /// A question; opens a thread.
        Probe = "PROBE",
        /// A claim, and a test that would prove it wrong; opens a thread.
        Assert = "ASSERT",
        /// A claim against a message, and how to decide between the two.
        Challenge = "CHALLENGE",
        /// An observation.
        Resolve = "RESOLVE",
        /// An agreement from now on.
        Fuse = "FUSE",
        /// The shared state, as one sees it.
        Sync = "SYNC",
        /// An idea beside the matter.
        Spark = "SPARK",
        /// The fruit of an idea.
        Harvest = "HARVEST",
        /// Why nothing becomes of an idea.
        Bury = "BURY",
    }

    /// The grounds of a resolution.
    Basis {
        /// A tool's output.
        Tool = "tool",
        /// A file, a log, a commit.
        Artifact = "artifact",
        /// A human's word.
        Human = "human",
        /// The agents agree.
        Consensus = "consensus",
        /// Nobody can tell any more.
        Stale = "stale",
    }
}

/// The rule for the `thread` of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threading {
    /// Left out, it opens a thread.
    Opens,
    /// It has to be there.
    Needed,
    /// It may be there.
    Optional,
    /// It has none.
    None,
}

impl Verb {
    /// The rule for its `thread`.
    pub fn threading(self) -> Threading {
        match self {
            Verb::Probe | Verb::Assert => Threading::Opens,
            Verb::Challenge | Verb::Resolve | Verb::Fuse => Threading::Needed,
            Verb::Sync => Threading::Optional,
            Verb::Hello | Verb::Spark | Verb::Harvest | Verb::Bury => Threading::None,
        }
    }
}

impl Basis {
    /// Whether claims are scored by it: agreeing proves nothing.
    pub fn is_scored(self) -> bool {
        match self {
            Basis::Tool | Basis::Artifact | Basis::Human => true,
            Basis::Consensus | Basis::Stale => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_to_the_letter() {
        for verb in Verb::ALL {
            assert_eq!(Verb::of_word(verb.word()), Some(*verb));
        }
        assert_eq!(Verb::ALL.len(), 10);
        for other in ["", "assert", "Assert", "ASSERT ", "SHOUT"] {
            assert_eq!(Verb::of_word(other), None, "{other}");
        }
        let scored: Vec<&str> =
            Basis::ALL.iter().filter(|basis| basis.is_scored()).map(|basis| basis.word()).collect();
        assert_eq!(scored, ["tool", "artifact", "human"]);
    }
}
