//! One job in parts, which any number of processes and machines make in any order, and whose result is proved
//! to be that of a single run.
//!
//! ```text
//!   plan    input ---> job/plan.json                 cuts, options, identities; its id is the hash of it all
//!   part    job/plan.json, input [begin, end) ---> job/parts/00012-HASH.mkv     data, named by its content
//!                                             ---> job/parts/00012.json         the record, made last
//!   join    all records, all data ---> output, job/joined.json
//! ```
//!
//! A part is done when its record is there, names this plan, and its data are the recorded bytes: nothing
//! else is trusted. Data of the recorded length that were written at the recorded time are taken for these
//! bytes until the join, which reads them all. The record is made by a hard link, so that the first of two
//! workers on one part wins and the other's work is dropped. Records hold the hashes of the frames as they
//! went to the encoder, and the frames beside the cuts as the decoder gave them: `verify` finds a frame that
//! is missing, doubled or another.
//!
//! Who makes which part is no business of this module: a loop in a shell, `framepipe run`, or a cluster.

mod folder;
mod identity;
mod plan;
mod record;
mod verify;
mod warnings;

pub use folder::{JobError, JobFolder, JoinState, Joining, PartState, Published, host};
pub use identity::{Digest, Identity, IdentityError};
pub use plan::{Extent, OutputKind, Part, PinnedFilter, Plan, frame_extents, time_extents};
pub use record::{Data, ImageFile, Record};
pub use verify::{Verified, VerifyError, ranges, verify};
pub use warnings::merged;
