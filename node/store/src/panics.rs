//! Panics of redb, which answers some damage of a file with one: caught, and not printed, for the error says what is wrong.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
    thread,
};

thread_local! {
    /// A panic of this thread is expected at the moment.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Runs it; a panic is an error. Nothing that it had in hand may be used afterwards.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> thread::Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if !EXPECTED.get() {
                before(panicked);
            }
        }));
    });
    let outer = EXPECTED.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    EXPECTED.set(outer);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_expected_no_longer() {
        assert_eq!(caught(|| 1).ok(), Some(1));
        assert!(caught(|| panic!("as redb does")).is_err());
        assert!(!EXPECTED.get());
    }
}
