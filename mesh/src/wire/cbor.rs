//! CBOR as it is written here, and texts that are shared in memory.

use minicbor::Encode;

/// Room for most of what is encoded: a buffer that begins empty moves six times until it holds a message.
const USUAL_BYTES: usize = 512;

/// Deterministic CBOR. Encoding into memory cannot fail.
pub(crate) fn encode<T: Encode<()>>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(USUAL_BYTES);
    minicbor::encode(value, &mut out).expect("encoding into a Vec cannot fail");
    // Much of it is kept for long.
    out.shrink_to_fit();
    out
}

/// `Arc<str>` as CBOR text.
pub(crate) mod text {
    use std::sync::Arc;

    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        text: &Arc<str>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(text)?.ok()
    }

    pub(crate) fn decode<C>(
        d: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Arc<str>, minicbor::decode::Error> {
        d.str().map(Arc::from)
    }
}

/// A list of `Arc<str>` as CBOR texts.
pub(crate) mod texts {
    use std::sync::Arc;

    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        texts: &[Arc<str>],
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.array(texts.len() as u64)?;
        texts.iter().try_for_each(|text| e.str(text).map(|_| ()))
    }

    pub(crate) fn decode<C>(
        d: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Vec<Arc<str>>, minicbor::decode::Error> {
        d.array_iter::<&str>()?.map(|text| text.map(Arc::from)).collect()
    }
}

/// `Option<Arc<str>>` as CBOR text or null.
pub(crate) mod maybe_text {
    use std::sync::Arc;

    use minicbor::{Decoder, Encoder, data::Type, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        text: &Option<Arc<str>>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        match text {
            Some(text) => e.str(text)?.ok(),
            None => e.null()?.ok(),
        }
    }

    pub(crate) fn decode<C>(
        d: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<Option<Arc<str>>, minicbor::decode::Error> {
        if d.datatype()? == Type::Null {
            return d.null().map(|()| None);
        }
        d.str().map(|text| Some(Arc::from(text)))
    }
}

/// The holder of a task as an update sets it: null leaves it, the empty text is nobody.
pub(crate) mod maybe_holder {
    use std::sync::Arc;

    use minicbor::{Decoder, Encoder, encode::Write};

    pub(crate) fn encode<C, W: Write>(
        holder: &Option<Option<Arc<str>>>,
        e: &mut Encoder<W>,
        c: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        let text = holder.as_ref().map(|agent| agent.clone().unwrap_or_else(|| Arc::from("")));
        super::maybe_text::encode(&text, e, c)
    }

    pub(crate) fn decode<C>(
        d: &mut Decoder<'_>,
        c: &mut C,
    ) -> Result<Option<Option<Arc<str>>>, minicbor::decode::Error> {
        let text = super::maybe_text::decode(d, c)?;
        Ok(text.map(|agent| Some(agent).filter(|agent| !agent.is_empty())))
    }
}
