// Where events were lost: before which place of the queue, how many, and by
// which masters. Held apart from the queue, so that a loss needs no room there.
module gap_list #(
    parameter int LOG2 = 3,
    parameter int PLACE_BITS = 10,
    parameter int COUNT_BITS = 64
) (
    input  logic                  clk,
    input  logic                  rst_n,
    input  logic                  push,
    input  logic [PLACE_BITS-1:0] push_place,
    input  logic [COUNT_BITS-1:0] push_count,
    input  logic [15:0]           push_masters,
    output logic                  is_full,
    input  logic                  pop,
    output logic                  valid,
    output logic [PLACE_BITS-1:0] place,
    output logic [COUNT_BITS-1:0] count,
    output logic [15:0]           masters
`ifdef PROOFS
    ,
    // All of the list, the oldest first, for the proofs.
    output logic [LOG2:0] f_number,
    output logic [2**LOG2*PLACE_BITS-1:0] f_places,
    output logic [2**LOG2*COUNT_BITS-1:0] f_counts
`endif
);
  logic [PLACE_BITS-1:0] places       [0:2**LOG2-1];
  logic [COUNT_BITS-1:0] counts       [0:2**LOG2-1];
  logic [15:0]           master_lists [0:2**LOG2-1];
  logic [LOG2:0] head, tail;

  assign valid = head != tail;
  assign is_full = head[LOG2] != tail[LOG2] && head[LOG2-1:0] == tail[LOG2-1:0];
  assign place = places[tail[LOG2-1:0]];
  assign count = counts[tail[LOG2-1:0]];
  assign masters = master_lists[tail[LOG2-1:0]];

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      head <= '0;
      tail <= '0;
    end else begin
      if (push) begin
        places[head[LOG2-1:0]]       <= push_place;
        counts[head[LOG2-1:0]]       <= push_count;
        master_lists[head[LOG2-1:0]] <= push_masters;
        head                         <= head + 1'b1;
      end
      if (pop) tail <= tail + 1'b1;
    end
  end
`ifdef PROOFS
  assign f_number = head - tail;
  always_comb begin
    for (int i = 0; i < 2 ** LOG2; i++) begin
      f_places[i*PLACE_BITS+:PLACE_BITS] = places[tail[LOG2-1:0]+LOG2'(i)];
      f_counts[i*COUNT_BITS+:COUNT_BITS] = counts[tail[LOG2-1:0]+LOG2'(i)];
    end
  end
`endif
endmodule
