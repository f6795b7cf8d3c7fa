//! The fields of each message, in the order in which they are written.

use super::steps::Step;

/// The protocol, as its first line names it.
pub(crate) const PROTOCOL: &str = "clawfinder/1";

/// Lines of a message's head at most: a RESULT with sixteen attachments has 72.
pub(crate) const LINES_MAX: usize = 80;

/// The longest line of a head, in bytes.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024;

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    /// Its key.
    pub(crate) key: &'static str,
    /// Whether the message is incomplete without it.
    pub(crate) required: bool,
}

const fn required(key: &'static str) -> Field {
    Field { key, required: true }
}

const fn optional(key: &'static str) -> Field {
    Field { key, required: false }
}

/// The fields of a message beside those that all have.
pub(crate) fn of(step: Step) -> &'static [Field] {
    const INIT: [Field; 4] = [
        required("job_ref"),
        required("need"),
        required("consumer_username"),
        required("index_url"),
    ];
    const ACK: [Field; 3] =
        [required("capabilities"), required("pricing"), optional("constraints")];
    const PROPOSE: [Field; 4] = [
        required("capability"),
        required("price"),
        required("payment_method"),
        optional("parameters"),
    ];
    const COUNTER: [Field; 3] = [required("price"), required("reason"), optional("capability")];
    const REJECT: [Field; 1] = [required("reason")];
    // Amount and wallet are needed where `lobster.cash` was agreed, which is another rule: [`lacks_payment`].
    const RESULT: [Field; 4] = [
        optional("invoice_amount"),
        optional("invoice_wallet_address"),
        required("invoice_payment_method"),
        optional("invoice_ref"),
    ];
    match step {
        Step::Init => &INIT,
        Step::Ack => &ACK,
        Step::Propose => &PROPOSE,
        Step::Counter => &COUNTER,
        Step::Reject => &REJECT,
        Step::Result => &RESULT,
        Step::Accept | Step::Execute => &[],
    }
}

/// Whether a message has attachments and a body.
pub(crate) fn has_body(step: Step) -> bool {
    match step {
        Step::Execute | Step::Result => true,
        Step::Init | Step::Ack | Step::Propose | Step::Counter | Step::Accept | Step::Reject => {
            false
        }
    }
}

/// The payment method whose RESULT must say how much is to be paid, and where.
pub(crate) const LOBSTER: &str = "lobster.cash";

/// What a reader adds to a RESULT without payment details, where they are needed.
pub(crate) const LACKS_PAYMENT: &str =
    "payment details are missing; ask for them before you settle";

/// Whether a RESULT lacks what the payment method that was agreed needs.
pub(crate) fn lacks_payment<'v>(agreed: &str, value: impl Fn(&str) -> Option<&'v str>) -> bool {
    let has = |key| value(key).is_some_and(|value| !value.trim().is_empty());
    agreed == LOBSTER && !(has("invoice_amount") && has("invoice_wallet_address"))
}
