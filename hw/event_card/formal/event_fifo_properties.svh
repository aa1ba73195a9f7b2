// Of the queue alone, with whatever may happen at its ports: what is proved for
// any number of cycles by induction (run.py, task "queue").

// The stage after it holds at most one event, and takes an item when it is free.
reg f_is_first = 1'b1;
reg f_out;
reg [COUNT_BITS-1:0] f_left, f_told;
always @(posedge clk) begin
  f_is_first <= 1'b0;
  if (!rst_n) f_out <= 1'b0;
  else if (item_take && item_is_event) f_out <= 1'b1;
  else if (event_left) f_out <= 1'b0;
  if (!rst_n) f_left <= ZERO;
  else if (event_left) f_left <= f_left + ONE;
  if (!rst_n) f_told <= ZERO;
  else if (item_take) f_told <= f_told + item_gap;
end

`ifdef FORMAL_ALONE
always @(*) begin
  if (f_is_first) assume (!rst_n);
  if (event_left) assume (f_out);
  if (item_take) assume (item_valid && (!f_out || event_left));
end
`else
always @(posedge clk)
  if (rst_n && !f_is_first) begin
    queue_left_is_known: assert (!event_left || f_out);
    queue_take_is_allowed: assert (!item_take || (item_valid && (!f_out || event_left)));
  end
`endif

wire [DEPTH_LOG2:0] f_queued = head - tail;
localparam F_PLACE = DEPTH_LOG2 + 1;
wire [DEPTH_LOG2:0] f_first_gap = f_places[0+:F_PLACE] - tail;
wire [DEPTH_LOG2:0] f_second_gap = f_places[F_PLACE+:F_PLACE] - tail;
// The proofs are made with a list of two.
wire [COUNT_BITS-1:0] f_listed = (f_gaps >= 1 ? f_counts[0+:COUNT_BITS] : ZERO) +
                                 (f_gaps >= 2 ? f_counts[COUNT_BITS+:COUNT_BITS] : ZERO);
wire [COUNT_BITS-1:0] f_untold = (item_valid ? item_gap : ZERO) + front + f_listed + pending;

// An event that is written at any time is watched until it comes out.
(* anyseq *) reg f_begin_watching;
reg f_watching = 1'b0, f_is_due = 1'b0;
reg [DEPTH_LOG2:0] f_place;
reg [BITS-1:0] f_data;
always @(posedge clk) begin
  f_is_due <= 1'b0;
  if (!rst_n) f_watching <= 1'b0;
  else if (f_watching && passes && tail == f_place) begin
    f_watching <= 1'b0;
    f_is_due <= read;
  end else if (!f_watching && accept && f_begin_watching) begin
    f_watching <= 1'b1;
    f_place <= head;
    f_data <= push_data;
  end
end

always @(posedge clk)
  if (rst_n && !f_is_first) begin
    // Every event that came is in the queue, has left, or is counted as lost.
    queue_counts_every_event: assert (written == lost + level + f_left);
    queue_level_is_what_it_holds:
    assert (level == f_queued + (item_valid && item_is_event) + f_out);
    queue_is_bounded: assert (level <= DEPTH && f_queued <= DEPTH);
    // Every lost event has been told to the stream, or will be.
    queue_tells_every_loss: assert (lost == f_told + f_untold);
    queue_says_when_there_is_a_gap:
    assert (item_has_gap || !item_valid || item_gap == ZERO);
    queue_empties_its_accounts: assert ((has_pending || pending == ZERO) && (has_front || front == ZERO));
    queue_list_is_within: assert (f_gaps <= 2);
    // A gap in the list belongs to an event in the queue, so that it is told with it.
    queue_gaps_are_before_queued_events:
    assert ((f_gaps < 1 || f_first_gap < f_queued) &&
            (f_gaps < 2 || (f_second_gap < f_queued && f_first_gap < f_second_gap)));
    // What comes out is what went in, in the order in which it went in.
    queue_watch_is_queued: assert (!f_watching || (f_place - tail) < f_queued);
    queue_keeps_what_it_was_given: assert (!f_watching || f_words[f_place[DEPTH_LOG2-1:0]*BITS+:BITS] == f_data);
    queue_gives_what_it_was_given: assert (!f_is_due || (item_valid && item_is_event && item_data == f_data));
    // A held store is taken or lost after the limit.
    queue_holds_no_longer_than_said:
    assert (!(push_valid && stall_limit != 0 && stalled == stall_limit && !push_ready));
  end
