// Carries a word to another clock, now and then.
//
// The word is held still from `send` until the other side has taken it, so only
// the one-bit request and its answer are synchronised. A `send` while `is_busy`
// is ignored. `got` is up for one cycle of `to_clk`, with `word_out`.
module word_handshake #(
    parameter int BITS = 32
) (
    input  logic            from_clk,
    input  logic            from_rst_n,
    input  logic            send,
    input  logic [BITS-1:0] word_in,
    output logic            is_busy,
    input  logic            to_clk,
    input  logic            to_rst_n,
    output logic            got,
    output logic [BITS-1:0] word_out
);
  logic [BITS-1:0] held;
  logic request, answer;
  logic request_1, request_2;
  logic answer_1, answer_2;

  assign is_busy = request != answer_2;

  always_ff @(posedge from_clk) begin
    if (!from_rst_n) begin
      held     <= '0;
      request  <= 1'b0;
      answer_1 <= 1'b0;
      answer_2 <= 1'b0;
    end else begin
      answer_1 <= answer;
      answer_2 <= answer_1;
      if (send && !is_busy) begin
        held    <= word_in;
        request <= !request;
      end
    end
  end

  always_ff @(posedge to_clk) begin
    if (!to_rst_n) begin
      request_1 <= 1'b0;
      request_2 <= 1'b0;
      answer    <= 1'b0;
      got       <= 1'b0;
      word_out  <= '0;
    end else begin
      request_1 <= request;
      request_2 <= request_1;
      got       <= request_2 != answer;
      if (request_2 != answer) begin
        word_out <= held;
        answer   <= request_2;
      end
    end
  end
endmodule
