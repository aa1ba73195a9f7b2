// The queue of events: filled and drained at the same time, and what happens
// when it is full.
//
// It holds 2**DEPTH_LOG2 events, those on their way out included: an event
// leaves when the stream has taken it (`event_left`). Of every event that comes
// exactly one of three things is true at any time: it is in the queue, it has
// left, or it is counted in `lost`. Those lost are told to the stream, too, by
// the item that follows them (`item_gap`).
module event_fifo #(
    parameter int DEPTH_LOG2 = 9,
    parameter int GAPS_LOG2 = 3,
    parameter int BITS = 120,
    parameter int ID_BITS = 3,
    parameter int COUNT_BITS = 64
) (
    input  logic                  clk,
    input  logic                  rst_n,
    input  logic [1:0]            policy,
    input  logic [31:0]           stall_limit,
    input  logic                  push_valid,
    output logic                  push_ready,
    input  logic [BITS-1:0]       push_data,
    input  logic [ID_BITS-1:0]    push_master,
    output logic                  item_valid,
    input  logic                  item_take,
    output logic                  item_is_event,
    output logic [BITS-1:0]       item_data,
    output logic                  item_has_gap,
    output logic [COUNT_BITS-1:0] item_gap,
    output logic [15:0]           item_gap_masters,
    input  logic                  event_left,
    input  logic                  clear_high_water,
    output logic [DEPTH_LOG2:0]   level,
    output logic [DEPTH_LOG2:0]   high_water,
    output logic [COUNT_BITS-1:0] written,
    output logic [COUNT_BITS-1:0] lost
);
  localparam logic [DEPTH_LOG2:0] DEPTH = {1'b1, {DEPTH_LOG2{1'b0}}};
  localparam logic [COUNT_BITS-1:0] ONE = {{COUNT_BITS - 1{1'b0}}, 1'b1};
  localparam logic [COUNT_BITS-1:0] ZERO = {COUNT_BITS{1'b0}};

  // Places of the next event to be written and to be read, modulo twice DEPTH.
  logic [DEPTH_LOG2:0] head, tail;
  // Lost, and no event has been taken since.
  logic has_pending;
  logic [COUNT_BITS-1:0] pending;
  logic [15:0] pending_masters;
  // Lost before the oldest event in the queue, beside what the list says.
  logic has_front;
  logic [COUNT_BITS-1:0] front;
  logic [15:0] front_masters;
  logic [31:0] stalled;

  logic gap_valid, gaps_are_full;
  logic [DEPTH_LOG2:0] gap_place;
  logic [COUNT_BITS-1:0] gap_count;
  logic [15:0] gap_masters;

  wire is_full = level == DEPTH && !event_left;
  // A loss must be noted before anything is taken after it.
  wire can_note = !(has_pending && gaps_are_full);
  wire is_held_too_long = stall_limit != 32'd0 && stalled == stall_limit;
  wire overwrites = policy == event_card_pkg::POLICY_OVERWRITE && is_full;
  wire can_take = can_note && (!is_full || overwrites);
  wire may_lose = policy != event_card_pkg::POLICY_BACK_PRESSURE || is_held_too_long;
  wire accept = push_valid && can_take;
  wire lose = push_valid && !can_take && may_lose;
  wire discard = accept && overwrites;

  wire is_empty = head == tail;
  wire has_room_for_item = !item_valid || item_take;
  wire read = !is_empty && !discard && has_room_for_item;
  // What was lost last is told although no event follows.
  wire gap_alone = is_empty && has_front && has_room_for_item;
  wire pending_to_front = is_empty && has_pending && !accept;
  wire gap_is_here = gap_valid && gap_place == tail;
  wire passes = read || discard;

  wire [COUNT_BITS-1:0] gap_here = gap_is_here ? gap_count : ZERO;
  wire [15:0] gap_masters_here = gap_is_here ? gap_masters : 16'd0;
  wire [15:0] push_master_bit = 16'd1 << 4'(push_master);

`ifdef PROOFS
  wire [2**DEPTH_LOG2*BITS-1:0] f_words;
  wire [GAPS_LOG2:0] f_gaps;
  wire [2**GAPS_LOG2*(DEPTH_LOG2+1)-1:0] f_places;
  wire [2**GAPS_LOG2*COUNT_BITS-1:0] f_counts;
`endif

  assign push_ready = can_take || may_lose;

  event_memory #(
      .LOG2(DEPTH_LOG2),
      .BITS(BITS)
  ) u_memory (
      .clk(clk),
      .write(accept),
      .write_place(head[DEPTH_LOG2-1:0]),
      .write_data(push_data),
      .read(read),
      .read_place(tail[DEPTH_LOG2-1:0]),
      .read_data(item_data)
`ifdef PROOFS
      ,
      .f_words(f_words)
`endif
  );

  gap_list #(
      .LOG2(GAPS_LOG2),
      .PLACE_BITS(DEPTH_LOG2 + 1),
      .COUNT_BITS(COUNT_BITS)
  ) u_gaps (
      .clk(clk),
      .rst_n(rst_n),
      .push(accept && has_pending),
      .push_place(head),
      .push_count(pending),
      .push_masters(pending_masters),
      .is_full(gaps_are_full),
      .pop(passes && gap_is_here),
      .valid(gap_valid),
      .place(gap_place),
      .count(gap_count),
      .masters(gap_masters)
`ifdef PROOFS
      ,
      .f_number(f_gaps),
      .f_places(f_places),
      .f_counts(f_counts)
`endif
  );

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      head    <= '0;
      tail    <= '0;
      level   <= '0;
      written <= ZERO;
      lost    <= ZERO;
      stalled <= 32'd0;
    end else begin
      if (accept) head <= head + 1'b1;
      if (passes) tail <= tail + 1'b1;
      case ({
        accept && !discard, event_left
      })
        2'b10:   level <= level + 1'b1;
        2'b01:   level <= level - 1'b1;
        default: level <= level;
      endcase
      if (accept || lose) written <= written + ONE;
      if (lose || discard) lost <= lost + ONE;
      if (push_valid && !push_ready) stalled <= stalled + 32'd1;
      else stalled <= 32'd0;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) high_water <= '0;
    else if (clear_high_water || level > high_water) high_water <= level;
  end

  // What was lost goes from `pending` to the list (or, if nothing is queued, to
  // `front`), and from there to the item that comes next.
  always_ff @(posedge clk) begin
    if (!rst_n) begin
      has_pending     <= 1'b0;
      pending         <= ZERO;
      pending_masters <= 16'd0;
      has_front       <= 1'b0;
      front           <= ZERO;
      front_masters   <= 16'd0;
    end else begin
      if (lose) begin
        has_pending     <= 1'b1;
        pending         <= (pending_to_front ? ZERO : pending) + ONE;
        pending_masters <= (pending_to_front ? 16'd0 : pending_masters) | push_master_bit;
      end else if (accept || pending_to_front) begin
        has_pending     <= 1'b0;
        pending         <= ZERO;
        pending_masters <= 16'd0;
      end
      if (discard) begin
        // Whose event it was is in the memory, not here: anybody's.
        has_front     <= 1'b1;
        front         <= front + gap_here + ONE;
        front_masters <= 16'hffff;
      end else if (pending_to_front) begin
        has_front     <= 1'b1;
        front         <= (gap_alone ? ZERO : front) + pending;
        front_masters <= (gap_alone ? 16'd0 : front_masters) | pending_masters;
      end else if (read || gap_alone) begin
        has_front     <= 1'b0;
        front         <= ZERO;
        front_masters <= 16'd0;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      item_valid       <= 1'b0;
      item_is_event    <= 1'b0;
      item_has_gap     <= 1'b0;
      item_gap         <= ZERO;
      item_gap_masters <= 16'd0;
    end else if (read || gap_alone) begin
      item_valid       <= 1'b1;
      item_is_event    <= read;
      item_has_gap     <= has_front || gap_is_here;
      item_gap         <= front + (read ? gap_here : ZERO);
      item_gap_masters <= front_masters | (read ? gap_masters_here : 16'd0);
    end else if (item_take) begin
      item_valid <= 1'b0;
    end
  end
`ifdef PROOFS
`include "event_fifo_properties.svh"
`endif
endmodule
