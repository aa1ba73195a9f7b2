// What a store is: an event that is to be recorded, one that is switched off,
// or a write to a register.
module store_decoder #(
    parameter int EVENT_BITS = 16,
    parameter int ADDR_BITS  = 21
) (
    input  logic [ADDR_BITS-1:0]  address,
    input  logic [31:0]           data,
    input  logic [3:0]            strobes,
    input  logic                  is_enabled,
    input  logic [31:0]           mask,
    output logic                  is_event,
    output logic                  is_register,
    output logic [EVENT_BITS-1:0] event_number,
    output logic [2:0]            kind,
    output logic [31:0]           payload
);
  wire [2:0] slot = address[ADDR_BITS-1-:3];
  wire [4:0] event_class = event_number[EVENT_BITS-1-:5];
  wire unused = ^address[1:0];

  assign event_number = address[EVENT_BITS+1:2];
  assign kind = slot - 3'd1;
  assign is_register = slot == 3'd0;
  // A store that writes no byte is none.
  assign is_event = slot != 3'd0 && strobes != 4'd0 && is_enabled && mask[event_class];
  assign payload = {
    strobes[3] ? data[31:24] : 8'd0,
    strobes[2] ? data[23:16] : 8'd0,
    strobes[1] ? data[15:8] : 8'd0,
    strobes[0] ? data[7:0] : 8'd0
  };
endmodule
