//! The arguments of `clawmesh shell`, which itself is [`crate::shell`].

/// One connection and one identity for many commands
///
/// A typed line is sent to the room. A line that begins with `/` is a command: any of `clawmesh`, such as
/// `/vote cast ID 0`, and besides `/join ROOM`, `/leave`, `/help`, `/quit`. What happens in the room is shown.
/// Leadership and presence last as long as the shell does.
#[derive(Debug, clap::Args)]
pub struct Shell {
    /// The room to begin in (id, or exact name)
    #[arg(long, value_name = "ROOM", default_value = "lobby")]
    pub room: String,
}
