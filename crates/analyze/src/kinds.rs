//! The codes of the kinds of rows, as their column holds them.

use undertick_format::schema::Kind;

pub const INSTANT: i8 = Kind::Instant as i8;
pub const BEGIN: i8 = Kind::Begin as i8;
pub const END: i8 = Kind::End as i8;
pub(crate) const NEXT: i8 = Kind::Next as i8;
pub(crate) const PAIR: i8 = Kind::Pair as i8;
pub const BEGIN_ORDERED: i8 = Kind::BeginOrdered as i8;
pub const END_ORDERED: i8 = Kind::EndOrdered as i8;
pub const GAP: i8 = Kind::Gap as i8;
