//! What a turn has at hand: the node's clock, identity and memory, the effects that it gathers, and the events that the
//! engine acts on before the turn ends. Replicas, orders, folds and rooms need these, and no engine.

pub(crate) mod context;
pub(crate) mod happened;
pub(crate) mod noise;
