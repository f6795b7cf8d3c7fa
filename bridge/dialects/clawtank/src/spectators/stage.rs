//! A room that is looked at: it hears the events once, and writes each frame once, for all who look.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::extract::ws::Utf8Bytes;
use bridge::{
    read::{Onlooker, Visitor},
    seam::event::Event,
    shown::Eyes,
};
use mesh::name::id::RoomId;
use tokio::{
    sync::broadcast,
    task::AbortHandle,
    time::{Instant, sleep_until},
};

use super::{
    look::{self, Look, Rules, Turned},
    shown::Scene,
};
use crate::{
    envelope::Told,
    ids::Form,
    limits::{ACTIVITY_EVERY, LOOKED_AT_AGAIN, STAGE_FRAMES_MAX, TURNS_FROM, TURNS_WITHIN},
    newest::lock,
    shared::Shared,
    style::Style,
};

/// See the module.
pub(crate) struct Stage {
    pub(crate) room: RoomId,
    lobby: RoomId,
    prefixed: broadcast::Sender<Cast>,
    bare: broadcast::Sender<Cast>,
    rules: Mutex<Rules>,
    /// Changed while the stages are locked.
    present: AtomicUsize,
    task: Mutex<Option<AbortHandle>>,
    /// All have been told the last.
    over: AtomicBool,
}

/// What goes to all who look.
#[derive(Clone, Debug)]
pub(crate) enum Cast {
    /// A frame, but for this one, who has got another in its place.
    Frame(Utf8Bytes, Option<[u8; 16]>),
    /// The last one. `None`: the node stops.
    End(Option<Utf8Bytes>),
}

/// Opens one: it runs until nobody is there.
pub(super) fn open(
    shared: &Arc<Shared>,
    look: &Look,
    visitor: Visitor,
    (onlooker, style): (Onlooker, Style),
) -> Arc<Stage> {
    let stage = Arc::new(Stage {
        room: look.info.room.room,
        lobby: style.lobby,
        prefixed: broadcast::Sender::new(STAGE_FRAMES_MAX),
        bare: broadcast::Sender::new(STAGE_FRAMES_MAX),
        rules: Mutex::new(look.rules),
        present: AtomicUsize::new(0),
        task: Mutex::default(),
        over: AtomicBool::default(),
    });
    let run = Run {
        shared: Arc::downgrade(shared),
        stage: stage.clone(),
        visitor,
        onlooker,
        scene: Scene::new(&look.info),
    };
    *lock(&stage.task) = Some(tokio::spawn(run.go()).abort_handle());
    stage
}

struct Run {
    shared: Weak<Shared>,
    stage: Arc<Stage>,
    /// The first who looked: of a room that is not for everybody it has the key.
    visitor: Visitor,
    onlooker: Onlooker,
    scene: Scene,
}

impl Run {
    async fn go(mut self) {
        let mut due = None;
        let mut look_at = Instant::now() + LOOKED_AT_AGAIN;
        loop {
            tokio::select! {
                event = self.onlooker.next() => match event {
                    None => return self.stage.cast_end(None),
                    Some(Event::RoomClosed { .. }) => {
                        return self.stage.cast_end(Some(Turned::NotFound));
                    }
                    Some(event) => {
                        if self.scene.hears(event) {
                            due.get_or_insert_with(|| Instant::now() + ACTIVITY_EVERY);
                        }
                    }
                },
                () = sleep_until(due.unwrap_or(look_at)) => {
                    if due.take().is_some() {
                        self.show();
                    }
                    if Instant::now() >= look_at {
                        look_at = Instant::now() + LOOKED_AT_AGAIN;
                        if let Err(turned) = self.look_again().await {
                            return self.stage.cast_end(Some(turned));
                        }
                    }
                }
            }
        }
    }

    fn show(&mut self) {
        let items = self.scene.take();
        if !items.is_empty() {
            self.stage.cast(|style| items.told(style, self.stage.room), None);
        }
    }

    /// The hosts may have closed the room to those who look on.
    async fn look_again(&self) -> Result<(), Turned> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let style = Style { form: Form::Prefixed, lobby: self.stage.lobby, eyes: Eyes::Strangers };
        match look::again(&shared, self.stage.room, (self.visitor.clone(), style)).await {
            Ok(rules) => *lock(&self.stage.rules) = rules,
            Err(Turned::Denied(why)) => return Err(Turned::Denied(why)),
            // Whoever may not read it any more is sent away by himself.
            Err(Turned::NotFound | Turned::Full | Turned::Busy) => {}
        }
        Ok(())
    }
}

impl Stage {
    pub(crate) fn present(&self) -> usize {
        self.present.load(Ordering::Relaxed)
    }

    /// How long one who looks waits until a frame is written to it.
    pub(super) fn turn_of(&self, id: [u8; 16]) -> Duration {
        if self.present() <= TURNS_FROM {
            return Duration::ZERO;
        }
        // Ids are drawn.
        let place = u16::from_be_bytes([id[0], id[1]]);
        TURNS_WITHIN.mul_f64(f64::from(place) / f64::from(u16::MAX))
    }

    pub(super) fn takes(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn leaves(&self) {
        self.present.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn rules(&self) -> Rules {
        *lock(&self.rules)
    }

    /// Nobody is there.
    pub(super) fn end(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }

    /// Hears all frames in a form from now on. Who does not keep up loses the oldest.
    pub(crate) fn watch(&self, form: Form) -> broadcast::Receiver<Cast> {
        let casts = self.of(form).subscribe();
        if self.is_over() {
            // The last was said before this one heard: it is said again, and nobody else is there any more.
            drop(self.of(form).send(Cast::End(None)));
        }
        casts
    }

    /// Whether all have been told the last: nobody is let in any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn of(&self, form: Form) -> &broadcast::Sender<Cast> {
        match form {
            Form::Prefixed => &self.prefixed,
            Form::Bare => &self.bare,
        }
    }

    /// Writes a frame once for each form that somebody has.
    pub(crate) fn cast(&self, told: impl Fn(Style) -> Told, but: Option<[u8; 16]>) {
        for form in [Form::Prefixed, Form::Bare] {
            let casts = self.of(form);
            if casts.receiver_count() > 0 {
                let frame =
                    told(Style { form, lobby: self.lobby, eyes: Eyes::Strangers }).text(form);
                // Nobody listens any more: nobody is to be told.
                drop(casts.send(Cast::Frame(frame.into(), but)));
            }
        }
    }

    fn cast_end(&self, why: Option<Turned>) {
        self.over.store(true, Ordering::SeqCst);
        for form in [Form::Prefixed, Form::Bare] {
            let frame = why.map(|why| why.told().text(form).into());
            drop(self.of(form).send(Cast::End(frame)));
        }
    }
}

/// The next frame of one who looks. Of more than are kept the oldest are left out.
pub(crate) async fn next(casts: &mut broadcast::Receiver<Cast>) -> Cast {
    use broadcast::error::RecvError;
    loop {
        match casts.recv().await {
            Ok(cast) => return cast,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Cast::End(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::task::unconstrained;

    use super::*;

    fn stage() -> Stage {
        let room = RoomId([1; 16]);
        Stage {
            room,
            lobby: room,
            prefixed: broadcast::Sender::new(STAGE_FRAMES_MAX),
            bare: broadcast::Sender::new(STAGE_FRAMES_MAX),
            rules: Mutex::new(Rules { limit: 9, announces: false, chat: look::Chat::Everybody }),
            present: AtomicUsize::new(0),
            task: Mutex::default(),
            over: AtomicBool::default(),
        }
    }

    fn told(number: usize) -> Told {
        Told::fresh("spectator.activity", json!({"events": [number]}))
    }

    /// The bytes of the next frame, if there is one.
    async fn frame(casts: &mut broadcast::Receiver<Cast>) -> Utf8Bytes {
        match unconstrained(next(casts)).await {
            Cast::Frame(frame, _) => frame,
            Cast::End(_) => panic!("it has not ended"),
        }
    }

    #[tokio::test]
    async fn a_frame_is_written_once_for_all_who_look_and_not_for_forms_that_nobody_has() {
        let stage = stage();
        let mut all: Vec<_> = (0..3).map(|_| stage.watch(Form::Prefixed)).collect();
        let mut written = Vec::new();
        let of = |style: Style, written: &mut Vec<Form>| {
            written.push(style.form);
            told(1)
        };
        let forms = Mutex::new(&mut written);
        stage.cast(|style| of(style, &mut lock(&forms)), None);
        assert_eq!(written, [Form::Prefixed]);
        let mut places = Vec::new();
        for casts in &mut all {
            places.push(frame(casts).await.as_str().as_ptr());
        }
        assert!(places.iter().all(|place| *place == places[0]), "the same bytes");
    }

    #[test]
    fn a_crowd_is_shown_a_frame_one_after_the_other_and_a_few_at_once() {
        let stage = stage();
        let ids = (0..=u8::MAX).map(|n| [n; 16]);
        (0..TURNS_FROM).for_each(|_| stage.takes());
        assert!(ids.clone().all(|id| stage.turn_of(id).is_zero()));
        stage.takes();
        let turns: Vec<Duration> = ids.map(|id| stage.turn_of(id)).collect();
        assert!(turns.is_sorted() && turns[0].is_zero() && turns[255] == TURNS_WITHIN);
        assert!(turns.windows(2).all(|two| two[1] - two[0] < TURNS_WITHIN / 100), "spread evenly");
    }

    #[tokio::test]
    async fn who_does_not_keep_up_loses_the_oldest_and_holds_nobody_up() {
        let stage = stage();
        let (mut slow, mut quick) = (stage.watch(Form::Bare), stage.watch(Form::Bare));
        for number in 0..STAGE_FRAMES_MAX + 3 {
            stage.cast(|_| told(number), None);
            assert!(frame(&mut quick).await.contains(&format!("[{number}]")));
        }
        assert!(frame(&mut slow).await.contains("[3]"));
        stage.cast_end(None);
        let mut left = 0;
        while let Cast::Frame(..) = next(&mut slow).await {
            left += 1;
        }
        assert_eq!(left, STAGE_FRAMES_MAX - 1, "the end has the place of one");
        // One that comes in that moment is told so.
        assert!(stage.is_over());
        let mut late = stage.watch(Form::Bare);
        assert!(matches!(unconstrained(next(&mut late)).await, Cast::End(None)));
    }
}
